import type { EnqueueRequest, Job, Json } from '../jobs/job.ts'
import type { LogEvent } from './log-event.ts'

export type { Json }
/** What the command line shows of a job. */
export type JobView = Omit<Job, 'watchedUntil'>
export type SubmitRequest = EnqueueRequest

export interface ListRequest {
  readonly queue?: string
  readonly state?: JobView['state']
  /** By the time of creation, in milliseconds; both ends are included. */
  readonly from?: number
  readonly to?: number
  readonly ascending?: boolean
  readonly limit: number
  readonly cursor?: string
}

export interface FollowRequest {
  readonly jobId: string
  /** The current attempt if absent. */
  readonly attempt?: number
  readonly fromSequence?: number
  readonly fromTimestamp?: number
  /** Ends with what is stored now. */
  readonly noFollow?: boolean
  /**
   * `line`: each output by itself. `chunk`: consecutive outputs of one stream as one event, where only the bytes matter and
   * an object per line would be waste.
   */
  readonly grain: 'line' | 'chunk'
  readonly signal?: AbortSignal
}

export interface DeadLetterView {
  readonly body: string
  readonly reason: string
}

/** What the commands need of a server, or of a runtime in this process: they cannot tell which one they talk to. */
export interface JobsClient {
  enqueue(request: SubmitRequest): Promise<{ readonly jobId: string; readonly created: boolean }>
  get(jobId: string): Promise<JobView>
  list(request: ListRequest): Promise<{ readonly jobs: readonly JobView[]; readonly cursor?: string }>
  cancel(jobId: string): Promise<{ readonly state: JobView['state']; readonly requested: boolean }>
  /** Starts an ended job again. `run` is the one the caller saw, if it wants nobody to have been quicker. */
  retry(jobId: string, run?: number): Promise<{ readonly run: number }>
  deadLetters(queue: string, limit: number): Promise<readonly DeadLetterView[]>
  /** The whole id of the one job whose id begins so. Throws JOB_UNKNOWN if there is none or more than one. */
  resolveId(prefix: string): Promise<string>
  /** Ends with `jobEnded`, or with what is stored now. Reconnects by itself; throws when nobody answers any more. */
  follow(request: FollowRequest): AsyncIterable<LogEvent>
  close(): Promise<void>
}
