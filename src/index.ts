export {
  type Client,
  createClient,
  createEventBuffer,
  createEventReader,
  type FollowedEvent,
  type FollowedItem,
  type LogEvent,
} from './client/client.ts'
export { unpackChunks, unpackItems } from './client/unpack.ts'
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
export { createRuntime, type Runtime, type RuntimeDeps, type ServeOptions } from './runtime.ts'
export type { Emit, TelemetryEvent } from './telemetry/events.ts'
export { createLogger, logEvents } from './telemetry/logger.ts'
export type { Handler, HandlerContext } from './worker/handlers.ts'
export { done, giveUp, later } from './worker/outcome.ts'
