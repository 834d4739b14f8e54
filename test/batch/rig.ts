import { expect } from 'vitest'
import { type Batcher, type BatcherHooks, createBatcher } from '../../src/batch/batcher.ts'
import type { Flushed } from '../../src/batch/flights.ts'
import type { Sealed } from '../../src/batch/hold.ts'
import type { BatchLimits } from '../../src/batch/limits.ts'
import { Fault } from '../../src/kernel/fault.ts'
import { createSeededRandom } from '../../src/sim/seeded-random.ts'
import { createVirtualClock, settle, type VirtualClock } from '../../src/sim/virtual-clock.ts'

export class Refused extends Fault {
  readonly code = 'TEST_REFUSED'
  readonly retry = 'never'
}

/** A flush that was started, and the three ways in which it can end. */
export interface Flush {
  readonly text: string
  readonly trigger: string
  readonly at: number
  acknowledge(): Promise<void>
  fail(): Promise<void>
  refuse(): Promise<void>
}

export interface Rig {
  readonly batcher: Batcher<string>
  readonly clock: VirtualClock
  readonly flushes: Flush[]
  readonly stuck: string[]
  readonly reports: Flushed<string>[]
  /** Puts items in, in this turn; fails if one had to wait. */
  add(...items: string[]): void
  /** The flush that was started last. */
  last(): Flush
  /** What was given to flush so far, batch by batch. */
  texts(): string[]
}

export const someLimits: BatchLimits = {
  count: 3,
  bytes: 10,
  ageMs: 100,
  heldCount: 6,
  heldBytes: 20,
  retry: { attemptsMax: 3, baseMs: 10, capMs: 1_000 },
}

/** A batcher of strings on virtual time whose flushes end when the test says so. The size of a string is its length. */
export const aRig = (limits: Partial<BatchLimits> = {}, hooks: Partial<BatcherHooks<string>> = {}): Rig => {
  const clock = createVirtualClock()
  const flushes: Flush[] = []
  const stuck: string[] = []
  const reports: Flushed<string>[] = []
  const flush = ({ items, trigger }: Sealed<string>): Promise<void> =>
    new Promise((resolve, reject) => {
      flushes.push({
        text: items.join(' '),
        trigger,
        at: clock.monotonic(),
        acknowledge: () => end(resolve),
        fail: () => end(() => reject(new Error('failed for now'))),
        refuse: () => end(() => reject(new Refused('refused'))),
      })
    })
  const batcher = createBatcher<string>(
    { clock, random: createSeededRandom('rig') },
    { ...someLimits, ...limits },
    {
      sizeOf: (item) => item.length,
      flush,
      stuck: ({ items }) => stuck.push(items.join(' ')),
      flushed: (report) => reports.push(report),
      ...hooks,
    },
  )
  return {
    batcher,
    clock,
    flushes,
    stuck,
    reports,
    add: (...items) => {
      for (const item of items) expect(batcher.add(item)).toBeUndefined()
    },
    last: () => flushes.at(-1) as Flush,
    texts: () => flushes.map(({ text }) => text),
  }
}

/** Whether a promise has settled by now, and how. */
export const watch = (promise: Promise<unknown> | undefined): { state: string } => {
  const seen = { state: 'pending' }
  promise?.then(
    () => {
      seen.state = 'resolved'
    },
    (cause: unknown) => {
      seen.state = cause instanceof Fault ? cause.code : String(cause)
    },
  )
  return seen
}

const end = (how: () => void): Promise<void> => {
  how()
  return settle()
}
