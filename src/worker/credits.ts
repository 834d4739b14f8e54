import { assert } from '../kernel/assert.ts'

/** How many ends of attempts may be on their way to the store at once, besides what runs. */
const unsettledMax = 4_000

/**
 * Slots, as arithmetic. A slot is free again when the work in it has ended, not when its end was stored; what is being stored
 * has a bound of its own.
 */
export interface Credits {
  /** How many jobs may be taken just now. */
  free(): number
  /** Takes a slot for a job. */
  take(): void
  /** The work of a job has ended. */
  workEnded(): void
  /** The job is dealt with altogether. */
  settled(): void
  running(): number
  /** Jobs that are not dealt with: running ones, and those whose end is being stored. */
  unsettled(): number
  /** Resolves as soon as a slot is free, or nobody wants one any more. */
  whenFree(): Promise<void>
  /** Lets go of whoever waits. */
  close(): void
}

export const createCredits = (slots: number, changed: () => void): Credits => {
  let running = 0
  let unsettled = 0
  let isClosed = false
  let waiters: (() => void)[] = []

  const free = (): number => Math.max(0, Math.min(slots - running, slots + unsettledMax - unsettled))
  const letGo = (): void => {
    const all = waiters
    waiters = []
    for (const resolve of all) resolve()
  }
  const gaveBack = (): void => {
    if (waiters.length > 0 && free() > 0) letGo()
    changed()
  }

  return {
    free,
    take: () => {
      assert(free() > 0, 'a job was taken without a slot')
      running += 1
      unsettled += 1
    },
    workEnded: () => {
      running -= 1
      gaveBack()
    },
    settled: () => {
      unsettled -= 1
      assert(unsettled >= running, 'more jobs were settled than were taken')
      gaveBack()
    },
    running: () => running,
    unsettled: () => unsettled,
    whenFree: () => (isClosed || free() > 0 ? Promise.resolve() : new Promise((resolve) => void waiters.push(resolve))),
    close: () => {
      isClosed = true
      letGo()
    },
  }
}
