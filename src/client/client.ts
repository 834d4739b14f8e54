// What others import of the client.

export type { Enqueued, EnqueueRequest, Job, JobParams } from '../jobs/job.ts'
export {
  type Client,
  type ClientOptions,
  type ConnectOptions,
  createClient,
  createRemoteService,
  type RemoteService,
} from './connect.ts'
export { createEventBuffer, type EventBuffer } from './event-buffer.ts'
export { createEventReader, type EventReader } from './event-reader.ts'
export type { LogEvent } from './event-wire.ts'
export { AddressInvalid, ClientClosed, IdAmbiguous, ServerFault, ServerForeign, Unreachable } from './faults.ts'
export type { ListRequest } from './jobs.ts'
export type { FollowEventsRequest, FollowedEvent, FollowedItem } from './watch.ts'
