import fc from 'fast-check'
import { type Batcher, createBatcher } from '../../src/batch/batcher.ts'
import type { Sealed } from '../../src/batch/hold.ts'
import type { BatchLimits } from '../../src/batch/limits.ts'
import { sleep } from '../../src/kernel/clock.ts'
import { createSeededRandom } from '../../src/sim/seeded-random.ts'
import { createVirtualClock, type VirtualClock } from '../../src/sim/virtual-clock.ts'
import { Refused, watch } from './rig.ts'

// Random histories of a batcher on virtual time, written down as what could be seen from outside.

export interface Item {
  /** Rises with each call. */
  readonly id: number
  readonly size: number
}

type Verb = 'add' | 'barrier' | 'flushNow' | 'retry' | 'discard' | 'drain' | 'revoke'

export interface Script {
  readonly limits: BatchLimits
  readonly seed: number
  readonly steps: readonly { readonly waitMs: number; readonly verb: Verb; readonly sizes: readonly number[] }[]
  /** How flushes end, in turn, over and over. */
  readonly outcomes: readonly { readonly kind: 'ok' | 'fail' | 'refuse'; readonly tookMs: number }[]
}

export interface Call extends Item {
  readonly verb: 'add' | 'barrier'
  readonly at: number
  /** What was held when the call came, and whether others were waiting for room. */
  readonly held: { readonly count: number; readonly bytes: number }
  readonly behind: boolean
  /** How many batches had left by then. */
  readonly departures: number
  readonly promised: { state: string }
  /** When an added item was in. */
  admittedAt?: number
}

export interface Flight {
  readonly sealed: Sealed<Item>
  readonly startedAt: number
  endedAt?: number
  outcome?: 'ok' | 'fail' | 'refuse'
}

export interface History {
  readonly limits: BatchLimits
  readonly calls: readonly Call[]
  readonly flights: readonly Flight[]
  /** The most flushes that were under way at once. */
  readonly aloftMax: number
  readonly departures: readonly {
    readonly items: readonly Item[]
    readonly how: 'acknowledged' | 'discarded'
    readonly at: number
  }[]
  readonly heldSamples: readonly { readonly count: number; readonly bytes: number }[]
  readonly revoked:
    | { readonly items: readonly Item[]; readonly flights: number; readonly departures: number }
    | undefined
  readonly drained: { readonly state: string }
  readonly timersLeft: number
  readonly heldLeft: number
}

const limits = fc
  .record({
    count: fc.integer({ min: 1, max: 12 }),
    bytes: fc.integer({ min: 1, max: 60 }),
    ageMs: fc.constantFrom(0, 1, 20, 100),
  })
  .chain(({ count, bytes, ageMs }) =>
    fc.record({
      count: fc.constant(count),
      bytes: fc.constant(bytes),
      ageMs: fc.constant(ageMs),
      heldCount: fc.integer({ min: 2 * count, max: 4 * count }),
      heldBytes: fc.integer({ min: 2 * bytes, max: 4 * bytes }),
      retry: fc.constant({ attemptsMax: 3, baseMs: 10, capMs: 40 }),
    }),
  )

const verb = fc.oneof(
  { weight: 30, arbitrary: fc.constant<Verb>('add') },
  { weight: 3, arbitrary: fc.constantFrom<Verb>('barrier', 'flushNow', 'retry', 'discard') },
  { weight: 1, arbitrary: fc.constantFrom<Verb>('drain', 'revoke') },
)

export const script: fc.Arbitrary<Script> = fc.record({
  limits,
  seed: fc.nat(),
  steps: fc.array(
    fc.record({
      waitMs: fc.constantFrom(0, 0, 1, 5, 20, 40, 150),
      verb,
      sizes: fc.oneof(
        fc.array(fc.integer({ min: 0, max: 8 }), { minLength: 1, maxLength: 2 }),
        fc.array(fc.oneof(fc.integer({ min: 0, max: 8 }), fc.integer({ min: 0, max: 150 })), {
          minLength: 1,
          maxLength: 12,
        }),
      ),
    }),
    { maxLength: 25 },
  ),
  outcomes: fc.array(
    fc.record({
      kind: fc.constantFrom('ok' as const, 'ok' as const, 'ok' as const, 'fail' as const, 'refuse' as const),
      tookMs: fc.constantFrom(0, 0, 1, 10, 60, 300),
    }),
    { minLength: 1, maxLength: 8 },
  ),
})

/** Plays a script, then heals: every flush succeeds, the owner says retry, and the batcher drains unless it was revoked. */
export const play = async (played: Script): Promise<History> => {
  const clock = createVirtualClock()
  const world = aWorld(played, clock)
  for (const step of played.steps) {
    // Steps without a wait between them happen in one turn.
    if (step.waitMs > 0) await clock.advance(step.waitMs)
    world.act(step.verb, step.sizes)
    world.sample()
  }
  return world.heal()
}

const aWorld = (played: Script, clock: VirtualClock) => {
  const calls: Call[] = []
  const flights: Flight[] = []
  const departures: { items: readonly Item[]; how: 'acknowledged' | 'discarded'; at: number }[] = []
  const heldSamples: { count: number; bytes: number }[] = []
  let aloft = 0
  let aloftMax = 0
  let healed = false
  let drained = { state: 'never asked' }
  let revoked: History['revoked']

  const flush = async (sealed: Sealed<Item>): Promise<void> => {
    sample()
    const script = played.outcomes[flights.length % played.outcomes.length]
    const { kind, tookMs } = healed || script === undefined ? { kind: 'ok' as const, tookMs: 1 } : script
    const flight: Flight = { sealed, startedAt: clock.monotonic() }
    flights.push(flight)
    aloft += 1
    aloftMax = Math.max(aloftMax, aloft)
    if (tookMs > 0) await sleep(clock, tookMs)
    aloft -= 1
    flight.endedAt = clock.monotonic()
    flight.outcome = kind
    if (kind === 'fail') throw new Error('failed for now')
    if (kind === 'refuse') throw new Refused('refused')
  }

  const batcher: Batcher<Item> = createBatcher<Item>(
    { clock, random: createSeededRandom(played.seed) },
    played.limits,
    {
      sizeOf: ({ size }) => size,
      flush,
      flushed: ({ items }) => departures.push({ items, how: 'acknowledged', at: clock.monotonic() }),
    },
  )

  const sample = (): void => {
    heldSamples.push({ count: batcher.held.count, bytes: batcher.held.bytes })
  }

  const add = (size: number): void => {
    const base = aCall('add', size)
    const room = batcher.add(base)
    const call: Call = { ...base, promised: watch(room) }
    calls.push(call)
    const admit = () => {
      call.admittedAt = clock.monotonic()
    }
    if (room === undefined) admit()
    else room.then(admit, () => {})
  }

  const aCall = (verb: 'add' | 'barrier', size: number) => ({
    verb,
    id: calls.length,
    size,
    at: clock.monotonic(),
    departures: departures.length,
    held: { count: batcher.held.count, bytes: batcher.held.bytes },
    behind: calls.some(
      ({ promised, admittedAt, verb }) => verb === 'add' && promised.state === 'pending' && admittedAt === undefined,
    ),
  })

  const act = (verb: Verb, sizes: readonly number[]): void => {
    if (verb === 'add') for (const size of sizes) add(size)
    else if (verb === 'barrier') {
      const base = aCall('barrier', sizes[0] ?? 0)
      calls.push({ ...base, promised: watch(batcher.barrier(base)) })
    } else if (verb === 'discard') {
      const items = batcher.discard()
      if (items.length > 0) departures.push({ items, how: 'discarded', at: clock.monotonic() })
    } else if (verb === 'revoke') {
      const items = batcher.revoke()
      if (revoked === undefined && drained.state !== 'resolved') {
        revoked = { items, flights: flights.length, departures: departures.length }
      }
    } else if (verb === 'drain') drained = watch(batcher.drain())
    else batcher[verb]()
  }

  const heal = async (): Promise<History> => {
    healed = true
    if (revoked === undefined) drained = watch(batcher.drain())
    for (let round = 0; round < 1_000 && drained.state === 'pending'; round++) {
      batcher.retry()
      await clock.advance(50)
    }
    await clock.runUntilQuiet()
    return {
      limits: played.limits,
      calls,
      flights,
      aloftMax,
      departures,
      heldSamples,
      revoked,
      drained,
      timersLeft: clock.timers,
      heldLeft: batcher.held.count,
    }
  }
  return { act, sample, heal }
}
