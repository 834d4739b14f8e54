export { type Client, type ClientOptions, type ConnectOptions, createClient } from './client/connect.ts'
export { createEventBuffer, type EventBuffer } from './client/event-buffer.ts'
export { createEventReader, type EventReader } from './client/event-reader.ts'
export type { LogEvent } from './client/event-wire.ts'
export { type Chunk, type FollowedChunk, unpackChunks, unpackItems } from './client/unpack.ts'
export type { FollowEventsRequest, FollowedEvent, FollowedItem } from './client/watch.ts'
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
