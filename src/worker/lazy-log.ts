import type { Claim, Closing, Renewal } from '../jobs/job.ts'
import type { AttemptLog, EndInfo, StartInfo } from '../log/attempt-log.ts'
import type { StoredItem } from '../log/event.ts'

export interface LazyLogDeps {
  /** Makes the log of an attempt; `publish` stores its entries. */
  readonly createLog: (claim: Claim, publish: (items: readonly StoredItem[]) => Promise<Renewal>) => AttemptLog
  /** The PROCESS_END of a log that has nothing else in it. */
  readonly bareEnd: (claim: Claim, end: EndInfo) => StoredItem
}

export interface LazyLogHooks {
  /** Called before the log is made: whoever has a log needs somebody to look after it. */
  opening(): void
  readonly publish: (items: readonly StoredItem[]) => Promise<Renewal>
  /** Nothing can be published any more. */
  failed(error: unknown): void
}

/** The log of one attempt, made when there is something to say. A job that says nothing pays for none. */
export interface LazyLog {
  /** The log, begun with `info` if this is the first that is heard of it. */
  open(info: () => StartInfo): AttemptLog
  /** The log if there is one. */
  log(): AttemptLog | undefined
  setWatched(watched: boolean): void
  /** What belongs into the settling transaction. Asked twice it gives the same: a settle is recognised by its bytes. */
  finish(end: EndInfo): Closing | Promise<Closing>
  abandon(): void
}

export const createLazyLog = (deps: LazyLogDeps, claim: Claim, hooks: LazyLogHooks): LazyLog => {
  let log: AttemptLog | undefined
  let watched = false
  let closing: Closing | Promise<Closing> | undefined
  let isOver = false

  const make = (info: StartInfo): AttemptLog => {
    hooks.opening()
    const made = deps.createLog(claim, hooks.publish)
    log = made
    made.failed.catch((error: unknown) => {
      if (!isOver) hooks.failed(error)
    })
    if (watched) made.setWatched(true)
    made.start(info)
    return made
  }

  return {
    open: (info) => log ?? make(info()),
    log: () => log,
    setWatched: (now) => {
      if (watched !== now) log?.setWatched(now)
      watched = now
    },
    finish: (end) => {
      closing ??= log === undefined ? { output: [], end: deps.bareEnd(claim, end) } : log.finish(end)
      return closing
    },
    abandon: () => {
      isOver = true
      log?.abandon()
    },
  }
}
