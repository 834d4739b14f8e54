import { assert } from './assert.ts'

/** What `setTimeout` gave and `clearTimeout` takes. Opaque, so that a virtual clock can hand out numbers. */
export type Timer = unknown

/**
 * The port of time. Nothing else in `src` and `machines` reads a clock or starts a timer, so a simulation can own both.
 * Its shape fits xstate's `clock` option as it is.
 */
export interface Clock {
  /** Wall time in milliseconds since 1970. May jump; use it for stamps and schedules, never for measuring. */
  now(): number
  /** Milliseconds since some point in the past. Never goes back; comparable only within one process. */
  monotonic(): number
  /** Runs `fn` once, not before `ms` have passed on the monotonic clock. */
  setTimeout(fn: () => void, ms: number): Timer
  clearTimeout(timer: Timer): void
}

const timerMsMax = 2 ** 31 - 1

/** The machine's own time. */
export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  setTimeout: (fn, ms) => {
    // Node fires a longer timer at once.
    assert(ms <= timerMsMax, `a timer of ${ms} ms`)
    return setTimeout(fn, ms)
  },
  clearTimeout: (timer) => clearTimeout(timer as NodeJS.Timeout),
}

/** Resolves after `ms`, or at once when the signal is aborted. Never rejects: the caller looks at its signal. */
export const sleep = (clock: Clock, ms: number, signal?: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (signal?.aborted) return resolve()
    const done = () => {
      clock.clearTimeout(timer)
      signal?.removeEventListener('abort', done)
      resolve()
    }
    const timer = clock.setTimeout(done, ms)
    signal?.addEventListener('abort', done, { once: true })
  })
