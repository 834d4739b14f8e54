import type { ExecutionConfig, RetryOptions } from '../config/sections/jobs.ts'
import type { StoredItem } from '../log/event.ts'
import type { Priority } from '../queues/port.ts'
import type { JobState } from './transitions.ts'

export type Json = null | boolean | number | string | readonly Json[] | { readonly [name: string]: Json }

/** What a job does: a program with its arguments, or a handler by name with its input. */
export type JobParams =
  | {
      readonly kind: 'command'
      readonly argv: readonly string[]
      readonly cwd?: string
      readonly env?: Readonly<Record<string, string>>
      readonly stdin?: string
    }
  | { readonly kind: 'handler'; readonly name: string; readonly input: Json }

/** One unit of durable work, as a caller sees it. */
export interface Job {
  readonly id: string
  readonly queue: string
  readonly priority: Priority
  readonly state: JobState
  readonly params: JobParams
  readonly attempt: number
  /** Rises when a person starts an ended job again. */
  readonly run: number
  readonly notBefore: number
  readonly timeoutMs: number | undefined
  readonly execution: ExecutionConfig
  readonly retry: RetryOptions
  readonly failedAttempts: number
  readonly lostAttempts: number
  readonly workerId: string | undefined
  readonly requestId: string | undefined
  readonly cancelRequestedAt: number | undefined
  readonly watchedUntil: number | undefined
  readonly createdAt: number
  readonly updatedAt: number
  readonly result: Json | undefined
  readonly error: string | undefined
}

export interface EnqueueRequest {
  readonly queue: string
  readonly params: JobParams
  /** Any number of requests with one id give one job, as long as the id is remembered. */
  readonly requestId?: string
  /** For jobs whose id follows from something else: the same id is the same job. */
  readonly jobId?: string
  readonly priority?: Priority
  /** Wall time before which the job does not run; the past is now. Not together with `delayMs`. */
  readonly notBefore?: number
  readonly delayMs?: number
  /** The time limit of each attempt. */
  readonly timeoutMs?: number
  readonly retry?: Partial<RetryOptions>
  readonly execution?: Partial<ExecutionConfig>
}

export interface Enqueued {
  readonly jobId: string
  readonly createdAt: number
  readonly state: JobState
  /** False if an earlier request with the same id had made the job. */
  readonly created: boolean
}

/** What a worker has in its hands: this attempt of this job, and no other. */
export interface Hold {
  readonly jobId: string
  readonly queue: string
  readonly attempt: number
}

export interface Claim {
  readonly job: Job
  readonly hold: Hold
}

/** How an attempt ended, as its worker saw it. */
export type Outcome =
  | { readonly kind: 'done'; readonly result?: Json }
  | { readonly kind: 'failed'; readonly error: string }
  /** Failed, and trying again would not help. */
  | { readonly kind: 'giveUp'; readonly error: string }
  /** Nothing failed: call again after a while. */
  | { readonly kind: 'later'; readonly inMs: number }
  | { readonly kind: 'cancelled' }

/** The last entries of the attempt's log, stored in one step with the outcome. `end` is its PROCESS_END. */
export interface Closing {
  readonly output: readonly StoredItem[]
  readonly end: StoredItem
}

export interface Settled {
  readonly state: JobState
  /** When the next attempt may start, if there is one. */
  readonly notBefore: number | undefined
}

export interface Renewal {
  readonly cancelRequested: boolean
  readonly watchedUntil: number | undefined
}
