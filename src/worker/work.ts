import type { Outcome } from '../jobs/job.ts'
import type { EndInfo } from '../log/attempt-log.ts'

/** How work ended, before anybody asks whether it was told to. */
export interface Ended {
  readonly outcome: Outcome
  readonly end: EndInfo
  /** It answered, or could not even begin: that stands also if it was told to stop because the worker does. */
  readonly byItself: boolean
}

/** What work tells the attempt that it belongs to. */
export interface Told {
  started(): void
  /** The process is gone, its pipes may not be; `flowing` unless it is we who do not read. */
  exited(flowing: boolean): void
  /** Whether we read, of a process that is gone. */
  flowing(flowing: boolean): void
  /** Nothing more comes. */
  closed(): void
  /** Something happened that cannot happen. */
  broke(error: unknown): void
}

/** What an attempt runs: a program, or a handler. */
export interface Work {
  begin(told: Told): void
  /** SIGTERM to a program, an aborted signal for a handler. `why` goes into the log. */
  terminate(why: string | undefined): void
  /** SIGKILL to a program. A handler cannot be killed: it is not waited for. */
  kill(why: string | undefined): void
  /** It would not die: whatever it does from now on is no part of the attempt. Says `closed`. */
  abandon(): void
  /**
   * Lets go of what is still open, and resolves when that is done. `forced` also kills what is left; `silent` leaves nothing in
   * the log.
   */
  close(how: { readonly forced: boolean; readonly silent: boolean }): Promise<void> | undefined
  /** How it ended. Asked only once it has. */
  ended(): Ended
}
