import type { Clock, Timer } from '../../kernel/clock.ts'
import type { Hold } from './backlog.ts'
import { createSorted } from './sorted.ts'

/** When holds end. One timer for all of them, and none while there are none. */
export interface Holds {
  /** A hold of the usual length that begins now. */
  add(hold: Hold): void
  /** A hold that ends at any other time; also one that was here before. */
  set(hold: Hold, untilMs: number): void
  drop(hold: Hold): void
  stop(): void
}

/** `ended` is called with holds that have passed; they are no longer here. */
export const createHolds = (clock: Clock, ended: (holds: readonly Hold[]) => void): Holds => {
  // Usual holds all have one length, so they end in the order they began and a set keeps them sorted for nothing. Finishing
  // one costs a deletion; a heap would have to carry the dead for a whole hold time.
  const usual = new Set<Hold>()
  const others = createSorted<Hold>((a, b) => a.untilMs - b.untilMs || a.order - b.order)
  let orders = 0
  let timer: Timer
  let timerAtMs = Number.POSITIVE_INFINITY

  const first = (): Hold | undefined => {
    const [oldest] = usual
    const other = others.first()
    return oldest && other ? (oldest.untilMs <= other.untilMs ? oldest : other) : (oldest ?? other)
  }
  const disarm = () => {
    clock.clearTimeout(timer)
    timerAtMs = Number.POSITIVE_INFINITY
  }
  /** A timer that fires too early for what is left is set again then: that is rarer than every hold that ends in time. */
  const arm = () => {
    const next = first()
    if (!next) return disarm()
    if (timerAtMs <= next.untilMs) return
    disarm()
    timerAtMs = next.untilMs
    timer = clock.setTimeout(fire, Math.min(timerMsMax, Math.max(0, Math.ceil(next.untilMs - clock.monotonic()))))
  }
  const fire = () => {
    timerAtMs = Number.POSITIVE_INFINITY
    const nowMs = clock.monotonic()
    const past: Hold[] = []
    for (let hold = first(); hold && hold.untilMs <= nowMs; hold = first()) {
      forget(hold)
      past.push(hold)
    }
    arm()
    if (past.length > 0) ended(past)
  }
  const forget = (hold: Hold) => {
    if (!usual.delete(hold)) others.remove(hold)
  }

  return {
    add: (hold) => {
      usual.add(hold)
      if (timerAtMs > hold.untilMs) arm()
    },
    set: (hold, untilMs) => {
      forget(hold)
      hold.untilMs = untilMs
      hold.order = ++orders
      others.insert(hold)
      arm()
    },
    drop: (hold) => {
      forget(hold)
      if (usual.size + others.size === 0) disarm()
    },
    stop: disarm,
  }
}

/** Timers of this machine overflow beyond 2^31 ms. */
const timerMsMax = 86_400_000
