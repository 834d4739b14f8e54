import { assert } from '../kernel/assert.ts'
import type { Clock } from '../kernel/clock.ts'

export interface VirtualClock extends Clock {
  /** Fires the next timer and moves time to it. False when none is set. */
  step(): boolean
  /** Moves time by `ms`, firing what falls due on the way. Promises settle between timers. */
  advance(ms: number): Promise<void>
  /** Steps until no timer is left, letting promises settle between timers. */
  runUntilQuiet(timersMax?: number): Promise<void>
  /** Moves the wall clock alone, as a person or a time server would. */
  setWall(ms: number): void
  readonly timers: number
}

interface Entry {
  readonly at: number
  readonly order: number
  readonly fn: () => void
}

/** Time that moves only when told, from timer to timer. Timers of one instant fire in the order they were set. */
export const createVirtualClock = (startMs = 1_750_000_000_000): VirtualClock => {
  let monotonic = 0
  let wallOffset = startMs
  let orders = 0
  const pending = new Map<number, Entry>()

  const earliest = (): Entry | undefined => {
    let best: Entry | undefined
    for (const entry of pending.values()) {
      if (!best || entry.at < best.at || (entry.at === best.at && entry.order < best.order)) best = entry
    }
    return best
  }
  const fire = (entry: Entry) => {
    pending.delete(entry.order)
    monotonic = Math.max(monotonic, entry.at)
    entry.fn()
  }

  const clock: VirtualClock = {
    now: () => wallOffset + monotonic,
    monotonic: () => monotonic,
    setTimeout: (fn, ms) => {
      assert(!Number.isNaN(ms) && ms >= 0, `a timer of ${ms} ms`)
      orders += 1
      pending.set(orders, { at: monotonic + ms, order: orders, fn })
      return orders
    },
    clearTimeout: (timer) => {
      pending.delete(timer as number)
    },
    step: () => {
      const entry = earliest()
      if (entry) fire(entry)
      return entry !== undefined
    },
    advance: async (ms) => {
      const until = monotonic + ms
      await settle()
      for (let entry = earliest(); entry && entry.at <= until; entry = earliest()) {
        fire(entry)
        await settle()
      }
      monotonic = until
    },
    runUntilQuiet: async (timersMax = 100_000) => {
      for (let fired = 0; fired < timersMax; fired++) {
        await settle()
        if (!clock.step()) return
      }
      assert(false, `still busy after ${timersMax} timers`)
    },
    setWall: (ms) => {
      wallOffset = ms - monotonic
    },
    get timers() {
      return pending.size
    },
  }
  return clock
}

/** Lets every promise that can settle do so. Computing is instant; only waiting takes virtual time. */
export const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))
