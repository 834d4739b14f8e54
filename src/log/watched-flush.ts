import type { Clock, Timer } from '../kernel/clock.ts'

/**
 * While somebody watches, what comes first after a quiet period is flushed at once, and what comes during a flush as soon as it
 * has ended; never twice within the floor.
 */
export interface WatchedFlush {
  set(watched: boolean): void
  /** Something came in. */
  came(): void
  /** A flush began. */
  flushed(): void
  /** A flush ended; something may have been left open. */
  left(): void
  stop(): void
}

export const createWatchedFlush = (
  deps: { readonly clock: Clock; isOpen(): boolean; flushNow(): void },
  floorMs: number,
): WatchedFlush => {
  const { clock } = deps
  let isWatched = false
  let flushedAt = Number.NEGATIVE_INFINITY
  let timer: { readonly set: Timer } | undefined

  const clear = (): void => {
    if (timer !== undefined) clock.clearTimeout(timer.set)
    timer = undefined
  }

  const came = (): void => {
    if (!isWatched || timer !== undefined) return
    const waitMs = floorMs === 0 ? 0 : flushedAt + floorMs - clock.monotonic()
    if (waitMs <= 0) deps.flushNow()
    else timer = { set: clock.setTimeout(rung, waitMs) }
  }

  const rung = (): void => {
    timer = undefined
    if (deps.isOpen()) deps.flushNow()
  }

  return {
    set: (watched) => {
      isWatched = watched
      if (!watched) clear()
      else if (deps.isOpen()) came()
    },
    came,
    flushed: () => {
      flushedAt = clock.monotonic()
    },
    left: () => {
      if (deps.isOpen()) came()
    },
    stop: () => {
      isWatched = false
      clear()
    },
  }
}
