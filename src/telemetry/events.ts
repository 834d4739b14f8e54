// Every event we emit: name, fields, when. Logs and metrics are made from these. Fields that metrics use are closed sets;
// ids are for logs and traces only.

export type TelemetryEvent =
  /** A job was stored. */
  | { readonly name: 'job.enqueued'; readonly jobId: string; readonly queue: string }
  /** A worker took a job. */
  | { readonly name: 'job.claimed'; readonly jobId: string; readonly queue: string; readonly attempt: number }
  /** A worker renewed its lease. */
  | { readonly name: 'job.renewed'; readonly jobId: string; readonly queue: string }
  /** An attempt ended, and `state` is what became of the job. */
  | {
      readonly name: 'job.settled'
      readonly jobId: string
      readonly queue: string
      readonly attempt: number
      readonly state: string
    }
  /** The sweeper took a job from a worker that was not heard from. */
  | {
      readonly name: 'job.expired'
      readonly jobId: string
      readonly queue: string
      readonly attempt: number
      readonly state: string
    }
  /** Somebody cancelled a job that waited, or asked a running one to stop. */
  | { readonly name: 'job.cancelled'; readonly jobId: string; readonly queue: string; readonly requested: boolean }
  /** A person started an ended job again. */
  | { readonly name: 'job.redriven'; readonly jobId: string; readonly queue: string; readonly run: number }
  /** A write of a worker was refused, because its attempt is over. */
  | { readonly name: 'job.fenced'; readonly jobId: string; readonly attempt: number; readonly verb: string }
  /** A message could not be sent; the sweeper will send it. */
  | { readonly name: 'message.unsent'; readonly jobId: string; readonly queue: string; readonly code: string }
  /** The sweeper sent a message that seemed lost. */
  | { readonly name: 'message.resent'; readonly jobId: string; readonly queue: string }
  /** A message came too late or twice and was dropped. */
  | { readonly name: 'message.dropped'; readonly jobId: string; readonly queue: string; readonly reason: string }
  /** A message was put aside for a person. */
  | { readonly name: 'message.deadLettered'; readonly queue: string; readonly reason: string }
  /** The queue would not finish, release or put aside a message; it comes again. */
  | { readonly name: 'message.unacknowledged'; readonly queue: string; readonly verb: string; readonly code: string }
  /** A sweep ended. */
  | { readonly name: 'sweep.ended'; readonly resent: number; readonly expired: number; readonly failed: number }
  /** A group of writes was stored. */
  | {
      readonly name: 'writes.flushed'
      readonly lane: string
      readonly trigger: string
      readonly writes: number
      readonly tookMs: number
    }
  /** Items of an attempt's log were stored in one call: `events` in `items`, `bytes` as stored, for the reason of the first. */
  | {
      readonly name: 'log.flushed'
      readonly jobId: string
      readonly attempt: number
      readonly trigger: string
      readonly items: number
      readonly events: number
      readonly bytes: number
      readonly waitedMs: number
      readonly tookMs: number
    }
  /** A call of the storage service ended. `units` is what it says the call cost. */
  | {
      readonly name: 'storage.called'
      readonly operation: string
      readonly outcome: string
      readonly tookMs: number
      readonly units: number
    }
  /** A call of the queue service was tried again, or came with a receipt that is good for nothing any more. */
  | {
      readonly name: 'queue.troubled'
      readonly kind: 'stale' | 'retried'
      readonly verb: string
      readonly code?: string
      readonly count: number
    }
  /** A call of the API ended; `code` is that of its error, or Ok. */
  | {
      readonly name: 'call.ended'
      readonly service: string
      readonly method: string
      readonly code: string
      readonly tookMs: number
    }
  /** Something is not as it should be, and the system goes on. */
  | { readonly name: 'warning'; readonly text: string; readonly code?: string }

/** A listener can never break the work it watches: whoever provides `emit` keeps its failures to itself. */
export type Emit = (event: TelemetryEvent) => void

export const silent: Emit = () => {}
