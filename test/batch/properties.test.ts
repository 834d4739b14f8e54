import fc from 'fast-check'
import { expect, test } from 'vitest'
import { type BatcherHooks, createBatcher } from '../../src/batch/batcher.ts'
import { createSeededRandom } from '../../src/sim/seeded-random.ts'
import { createVirtualClock } from '../../src/sim/virtual-clock.ts'
import { type Flight, type History, type Item, play, script } from './history.ts'
import { someLimits } from './rig.ts'

const runs = 200

const lawHolds = (name: string, check: (history: History) => void): void => {
  test(name, async () => {
    await fc.assert(
      fc.asyncProperty(script, async (played) => check(await play(played))),
      { numRuns: runs },
    )
  })
}

const ids = (items: readonly Item[]): number[] => items.map(({ id }) => id)
const bytesOf = (items: readonly Item[]): number => items.reduce((sum, { size }) => sum + size, 0)

/** The first flight of each batch. */
const firstFlights = (flights: readonly Flight[]): readonly Flight[] =>
  flights.filter((flight, n) => flights[n - 1]?.sealed !== flight.sealed)

/** Everything that got in, in the order in which it left, by whatever door. */
const outcome = ({ departures, revoked }: History): number[] => [
  ...departures.flatMap(({ items }) => ids(items)),
  ...ids(revoked?.items ?? []),
]

lawHolds(
  'B1 nothing waits longer than its age while nothing is in flight, and age flushes nothing early',
  (history) => {
    const { flights, departures, calls, limits } = history
    for (const { sealed, startedAt } of firstFlights(flights)) {
      const oldest = calls[sealed.items[0]?.id ?? -1]
      const cameAt = oldest?.admittedAt ?? oldest?.at ?? Number.NaN
      const before = departures.filter(({ items }) => (items.at(-1)?.id ?? 0) < (sealed.items[0]?.id ?? 0)).at(-1)
      if (oldest?.verb === 'add') {
        expect(startedAt).toBeLessThanOrEqual(Math.max(cameAt + limits.ageMs, before?.at ?? 0))
        if (sealed.trigger === 'age') expect(startedAt).toBeGreaterThanOrEqual(cameAt + limits.ageMs)
      }
    }
  },
)

lawHolds('B2 there are never two flushes at once', ({ aloftMax, flights, revoked }) => {
  // An abandoned flush may still be under way, but it is the last one.
  expect(aloftMax).toBeLessThanOrEqual(1)
  if (revoked !== undefined) expect(flights).toHaveLength(revoked.flights)
})

lawHolds('B3 everything that got in leaves exactly once, in order', (history) => {
  const left = outcome(history)
  expect(left).toEqual([...new Set(left)].sort((a, b) => a - b))
  const admitted = history.calls.filter(({ admittedAt }) => admittedAt !== undefined)
  expect(left).toEqual(expect.arrayContaining(ids(admitted)))
  for (const { verb, promised, id } of history.calls) {
    if (verb === 'add' && promised.state === 'BATCHER_CLOSED') expect(left).not.toContain(id)
  }
})

lawHolds(
  'B3 a batch leaves only when its last flush succeeded or its owner gave up, and is flushed unchanged',
  (history) => {
    for (const { items, how } of history.departures) {
      const flights = history.flights.filter(({ sealed }) => sealed.items[0]?.id === items[0]?.id)
      expect(flights.at(-1)?.outcome === 'ok').toBe(how === 'acknowledged')
      for (const { sealed } of flights) expect(sealed.items).toBe(items)
    }
  },
)

lawHolds('B4 what is held stays below the marks, and nobody waits without need', ({ heldSamples, calls, limits }) => {
  for (const { count, bytes } of heldSamples) {
    expect(count).toBeLessThanOrEqual(limits.heldCount)
    if (count > 1) expect(bytes).toBeLessThanOrEqual(limits.heldBytes)
  }
  for (const { verb, promised, behind, held, size } of calls) {
    if (verb === 'barrier' || behind || promised.state !== 'resolved') continue
    const fullCount = held.count + limits.count > limits.heldCount
    const fullBytes = held.bytes + Math.max(size, limits.bytes) > limits.heldBytes
    expect(fullCount || fullBytes).toBe(true)
  }
})

lawHolds('B5 no batch passes count or bytes unless it is one item', ({ flights, limits }) => {
  for (const { sealed } of flights) {
    expect(sealed.bytes).toBe(bytesOf(sealed.items))
    expect(sealed.items.length).toBeLessThanOrEqual(limits.count)
    if (sealed.items.length > 1) expect(sealed.bytes).toBeLessThanOrEqual(limits.bytes)
  }
})

lawHolds('B6 a barrier travels alone and resolves only when it and all before it are acknowledged', (history) => {
  for (const { id, verb, promised, departures } of history.calls) {
    if (verb !== 'barrier') continue
    for (const { sealed } of history.flights) {
      if (ids(sealed.items).includes(id)) expect(sealed).toMatchObject({ trigger: 'barrier', items: [{ id }] })
    }
    const awaited = history.departures.slice(departures).filter(({ items }) => (items[0]?.id ?? 0) <= id)
    const left = awaited.some(({ items }) => ids(items).includes(id))
    const kept = left && awaited.every(({ how }) => how === 'acknowledged')
    expect(promised.state).toMatch(kept ? /^resolved$/ : /^BATCH/)
  }
})

lawHolds('B7 a drained batcher holds nothing, a revoked one starts and reports nothing more', (history) => {
  const { drained, revoked, departures, flights } = history
  expect(history.timersLeft).toBe(0)
  expect(history.heldLeft).toBe(0)
  if (revoked === undefined) expect(drained.state).toBe('resolved')
  else expect([flights.length, departures.length]).toEqual([revoked.flights, revoked.departures])
  // Nobody is left waiting: every item got in or was refused.
  for (const { verb, promised, admittedAt } of history.calls) {
    if (verb === 'add') expect(admittedAt === undefined).toBe(promised.state === 'BATCHER_CLOSED')
  }
})

lawHolds('B8 no flush is empty, and there is one flight per batch and attempt', ({ flights, departures, revoked }) => {
  for (const { sealed } of flights) expect(sealed.items.length).toBeGreaterThan(0)
  const batches = firstFlights(flights).length
  if (revoked === undefined) expect(departures).toHaveLength(batches)
})

test('merging loses nothing: what is flushed under a key adds up to what was added', async () => {
  interface Sum {
    readonly key: string
    readonly amount: number
  }
  const additions = fc.array(fc.record({ key: fc.constantFrom('a', 'b', 'c', 'd', 'e', ''), amount: fc.nat(100) }))
  const property = fc.asyncProperty(additions, fc.nat(), async (sums, seed) => {
    const clock = createVirtualClock()
    const flushed: Sum[] = []
    const hooks: BatcherHooks<Sum> = {
      sizeOf: ({ amount }) => String(amount).length,
      flush: async ({ items }) => void flushed.push(...items),
      merge: {
        key: ({ key }) => (key === '' ? undefined : key),
        fold: (earlier, later) => ({ key: earlier.key, amount: earlier.amount + later.amount }),
      },
    }
    const batcher = createBatcher({ clock, random: createSeededRandom(seed) }, { ...someLimits, heldBytes: 40 }, hooks)
    for (const sum of sums) await batcher.add(sum)
    await batcher.drain()
    expect(totals(flushed)).toEqual(totals(sums))
    expect(flushed.length).toBeLessThanOrEqual(sums.length)
    expect(clock.timers).toBe(0)
  })
  const totals = (sums: readonly Sum[]) =>
    Object.fromEntries([...new Set(sums.map(({ key }) => key))].sort().map((key) => [key, totalOf(sums, key)]))
  const totalOf = (sums: readonly Sum[], key: string) =>
    sums.filter((sum) => sum.key === key).reduce((total, { amount }) => total + amount, 0)
  await fc.assert(property, { numRuns: runs })
})
