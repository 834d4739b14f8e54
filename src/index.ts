export { loadOptions } from './config/load.ts'
export type { Options } from './config/options.ts'
export type {
  Claim,
  Closing,
  Enqueued,
  EnqueueRequest,
  Hold,
  Job,
  JobParams,
  Json,
  Outcome,
  Renewal,
  Settled,
} from './jobs/job.ts'
export type { JobPage, ListRequest } from './jobs/list.ts'
export type { JobStore } from './jobs/store.ts'
export type { JobState } from './jobs/transitions.ts'
export { Fault, isFault } from './kernel/fault.ts'
export { logId } from './log/keys.ts'
export { createRuntime, type Runtime, type RuntimeDeps } from './runtime.ts'
export type { Emit, TelemetryEvent } from './telemetry/events.ts'
export { createLogger, logEvents } from './telemetry/logger.ts'
