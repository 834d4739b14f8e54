// The API's client as the commands know it. Its shape is spelled out here, so that a runtime in this process can have it too.

import type { Enqueued, EnqueueRequest, Job } from '../jobs/job.ts'
import type { StreamName } from '../log/event.ts'
import type { Marker } from '../log/follower.ts'
import type { DeadLetterView, FollowRequest, JobsClient, ListRequest } from './jobs-client.ts'
import type { LogEvent } from './log-event.ts'

type ClientEvent = { readonly sequence: number; readonly timestamp: number } & (
  | { readonly kind: 'output'; readonly stream: StreamName; readonly output: Uint8Array }
  | { readonly kind: 'processStart'; readonly workerId: string; readonly pid?: number }
  | { readonly kind: 'processEnd'; readonly exitCode?: number; readonly signal?: string; readonly error?: string }
  | { readonly kind: 'processError'; readonly message: string }
  | { readonly kind: 'progress'; readonly fraction?: number; readonly text?: string; readonly data?: unknown }
  | { readonly kind: 'outputCut'; readonly stream: StreamName; readonly bytes: number; readonly reason: string }
  | { readonly kind: 'unknown' }
)

export type FollowedEvent =
  | { readonly attempt: number; readonly event: ClientEvent }
  | { readonly attempt: number; readonly marker: Marker }

export interface ClientVerbs {
  enqueue(request: EnqueueRequest): Promise<Enqueued>
  get(jobId: string): Promise<Job>
  listPages(request: ListRequest): AsyncIterable<{ readonly jobs: readonly Job[]; readonly cursor?: string }>
  cancel(jobId: string): ReturnType<JobsClient['cancel']>
  retry(jobId: string, run?: number): Promise<{ readonly run: number }>
  deadLetters(queue: string, limit: number): Promise<readonly DeadLetterView[]>
  resolveId(prefix: string): Promise<string>
  follow(request: Omit<FollowRequest, 'grain'>): AsyncIterable<FollowedEvent>
  close(): void | Promise<void>
}

/**
 * `chunks` is for much output: consecutive outputs of one stream as one event, unpacked from stored batches without an object
 * per line. Without it every line is an event.
 */
export const jobsOf = (
  client: ClientVerbs,
  chunks?: (request: Omit<FollowRequest, 'grain'>) => AsyncIterable<LogEvent>,
): JobsClient => ({
  enqueue: (request) => client.enqueue(request),
  get: (jobId) => client.get(jobId),
  list: async (request) => {
    for await (const page of client.listPages(request)) return page
    return { jobs: [] }
  },
  cancel: (jobId) => client.cancel(jobId),
  retry: (jobId, run) => client.retry(jobId, run),
  deadLetters: (queue, limit) => client.deadLetters(queue, limit),
  resolveId: (prefix) => client.resolveId(prefix),
  follow: ({ grain, ...request }) =>
    grain === 'chunk' && chunks !== undefined ? chunks(request) : eventsOf(client.follow(request)),
  close: async () => client.close(),
})

async function* eventsOf(followed: AsyncIterable<FollowedEvent>): AsyncGenerator<LogEvent, void, void> {
  for await (const entry of followed) {
    const event = 'marker' in entry ? ofMarker(entry.attempt, entry.marker) : ofEvent(entry.attempt, entry.event)
    if (event !== undefined) yield event
  }
}

/** Undefined for what this version cannot read. Only what is shown is taken over: a start also has arguments, with secrets. */
export const ofEvent = (attempt: number, event: ClientEvent): LogEvent | undefined => {
  const place = { attempt, sequence: event.sequence, timestamp: event.timestamp }
  switch (event.kind) {
    case 'output': {
      const { kind, stream, output } = event
      return { ...place, kind, stream, bytes: output, endSequence: event.sequence }
    }
    case 'processStart': {
      const { kind, workerId, pid } = event
      return { ...place, kind, workerId, pid }
    }
    case 'processEnd': {
      const { kind, exitCode, signal, error } = event
      return { ...place, kind, exitCode, signal, error }
    }
    case 'unknown':
      return undefined
    default:
      return { ...event, attempt }
  }
}

export const ofMarker = (attempt: number, marker: Marker): LogEvent | undefined =>
  marker.kind === 'keepAlive' ? undefined : { ...marker, attempt, sequence: 0, timestamp: 0 }
