import { describe, expect, test } from 'vitest'
import { eventTypes, type StoredItem } from '../../src/log/event.ts'
import { eventsTable, logId } from '../../src/log/keys.ts'
import { createReplay, minBatchSequence } from '../../src/log/replay.ts'
import { aBatch, aFollowRig, anEnd, anError, aStart, jobId, range } from './follow-rig.ts'
import { eventsOf } from './rig.ts'

const log = logId(jobId, 1)

test('R0.6 the batch that contains a sequence begins at most a bound before it', () => {
  expect([25, 75, 200].map((sequence) => minBatchSequence(sequence, 50))).toEqual([1, 26, 151])
})

/** Everything from a sequence on, as a reader gets it, with the items it took. */
const replayFrom = async (items: readonly StoredItem[], from: number) => {
  const rig = aFollowRig()
  await rig.store(items)
  rig.set({ state: 'COMPLETED' })
  const view = rig.follow({ fromSequence: from })
  await rig.clock.advance(0)
  expect(view.state).toEqual({ ended: true, fault: undefined })
  const taken = view.entries.flatMap((entry) => ('item' in entry ? [entry.item] : []))
  const events = eventsOf(taken, from)
  const filtered = eventsOf(taken).length - events.length
  return { keys: taken.map(({ sequence }) => sequence), events, filtered, reads: rig.reads }
}

const batches = (sizes: readonly number[]): readonly StoredItem[] => {
  let sequence = 1
  return sizes.map((size) => {
    sequence += size
    return aBatch(sequence - size, size)
  })
}

describe('replay from a sequence', () => {
  test.each([
    ['R0.7', [50, 50, 50], 25, [1, 51, 101], 126, 24],
    ['R0.8 R0.33', [50, 50, 50], 75, [51, 101], 76, 24],
    ['R0.9 R0.34', [30, 45, 50, 25], 100, [76, 126], 51, 24],
    ['R0.10 R0.33 E0.1', [50, 50, 50], 51, [51, 101], 100, 0],
    ['R0.33', [50, 50, 50], 145, [101], 6, 44],
    ['the beginning', [50, 50, 50], 0, [1, 51, 101], 150, 0],
    ['the last', [50, 50, 50], 150, [101], 1, 49],
  ] as const)('%s batches of %j from %i are items %j', async (_, sizes, from, keys, count, filtered) => {
    const replayed = await replayFrom(batches(sizes), from)
    expect(replayed.keys).toEqual(keys)
    expect(replayed.events).toHaveLength(count)
    expect(replayed.filtered).toBe(filtered)
    expect(replayed.events.map(({ sequence }) => sequence)).toEqual(
      Array.from({ length: count }, (_, place) => Math.max(1, from) + place),
    )
    expect(replayed.events.at(-1)?.sequence).toBe(150)
  })

  test('R0.35 R0.36 E0.13 batches and single events mix', async () => {
    const items = [aStart(), aBatch(2, 50), aBatch(52, 50), anError(102), aBatch(103, 50), anEnd(153)]
    const { events } = await replayFrom(items, 50)
    expect(events[0]).toMatchObject({ sequence: 50, type: eventTypes.output })
    expect(events[2]).toMatchObject({ sequence: 52 })
    expect(events[52]).toMatchObject({ sequence: 102, type: eventTypes.processError })
    expect(events).toHaveLength(104)
  })

  test('R0.14 E0.4 from 9,000 of 10,000 lines only what is needed is read, and one item of it in part', async () => {
    const { keys, events, reads } = await replayFrom(batches(Array.from({ length: 200 }, () => 50)), 9_000)
    expect(keys).toHaveLength(21)
    expect(keys[0]).toBe(8_951)
    expect(events).toHaveLength(1_001)
    expect(reads[0]).toMatchObject({ from: 8_951, to: 9_000, descending: true, limit: 1 })
  })

  test('E20 changing the batch size between writing and replay loses nothing', async () => {
    const rig = aFollowRig()
    await rig.store([aStart(), aBatch(2, 2_000), aBatch(2_002, 3), anEnd(2_005)])
    // The bound that was stored with the job; what a server would give a new one does not count.
    rig.set({ state: 'COMPLETED', batchSizeBound: 2_000 })
    const view = rig.follow({ fromSequence: 1_999 })
    await rig.clock.advance(0)
    expect(view.said().slice(0, 7)).toEqual(range(1_999, 2_005))
  })
})

describe('replay from a time', () => {
  const many = Array.from({ length: 1_000 }, (_, place) => aBatch(1 + place * 10, 10, 100_000 + place * 1_000))

  test.each([
    [0, 1],
    [100_000, 1],
    [100_001, 1],
    [100_500, 1],
    [500_000, 3_991],
    [500_001, 4_001],
    [9_999_999, 9_991],
  ])('E0.18 what happened from %i on begins in the item at %i, found in few reads', async (timestamp, sequence) => {
    const rig = aFollowRig()
    await rig.store(many)
    const replay = createReplay({ tables: rig.counted, clock: rig.clock })
    expect(await replay.sequenceAt(log, timestamp, 50)).toBe(sequence)
    expect(rig.reads.length).toBeLessThanOrEqual(16)
    expect(rig.reads.every(({ limit }) => limit === 1)).toBe(true)
  })

  test('E0.18 a stream from a time begins there', async () => {
    const rig = aFollowRig()
    await rig.store(many)
    rig.set({ state: 'COMPLETED' })
    const view = rig.follow({ fromTimestamp: 1_098_000 })
    await rig.clock.advance(0)
    const first = view.entries[0]
    expect(first && 'item' in first && first.item.sequence).toBe(9_971)
  })

  test('a log that is not there yet begins at 1', async () => {
    const rig = aFollowRig()
    const replay = createReplay({ tables: rig.tables, clock: rig.clock })
    expect(await replay.sequenceAt(log, 5, 50)).toBe(1)
  })
})

describe('what is not there', () => {
  test('E21 what has expired is a prefix, and the stream says where it begins', async () => {
    const rig = aFollowRig()
    const seconds = rig.clock.now() / 1_000
    await rig.store([aStart(), aBatch(2, 50)], 1, seconds - 10)
    await rig.store([aBatch(52, 50, rig.clock.now() - 5_000), anEnd(102)], 1, seconds + 100)
    rig.set({ state: 'COMPLETED' })
    const view = rig.follow()
    await rig.clock.advance(0)
    expect(view.said()).toEqual(['1 trimmed 52', ...range(52, 102), '1 attemptEnded 102 true', '1 jobEnded COMPLETED'])
  })

  test('E21 the same when somebody has deleted what expired, also while a stream is being read', async () => {
    const rig = aFollowRig()
    const seconds = rig.clock.now() / 1_000
    const items = Array.from({ length: 60 }, (_, place) => aBatch(1 + place, 1, rig.clock.now() + place))
    for (const [place, item] of items.entries()) await rig.store([item], 1, seconds + 60 + place)
    const entries = rig.follower.follow({ jobId, noFollow: true })
    expect((await entries.next()).value).toMatchObject({ item: { sequence: 1 } })
    const read = async (from: number, to: number) => {
      for (let sequence = from; sequence <= to; sequence++) {
        expect((await entries.next()).value).toMatchObject({ item: { sequence } })
      }
    }
    await read(2, 32)
    await rig.clock.advance(112_000)
    expect(await rig.tables.purge(rig.clock.now() / 1_000, 1_000)).toBe(52)
    // This page had been fetched ahead.
    await read(33, 48)
    expect((await entries.next()).value).toMatchObject({ marker: { kind: 'trimmed', before: 53 } })
    await read(53, 60)
  })

  test('E22 a damaged item and a foreign row are reported in their place, and the stream goes on', async () => {
    const rig = aFollowRig()
    const broken = { ...aBatch(2, 10), crc: 1 }
    await rig.store([aStart(), broken, aBatch(12, 2), aBatch(15, 1), anEnd(16)])
    const foreign = { log_id: log, sequence: 14, surprise: true }
    await rig.tables.commit([{ actions: [{ kind: 'put', table: eventsTable.name, row: foreign }] }])
    rig.set({ state: 'COMPLETED' })
    const view = rig.follow()
    await rig.clock.advance(0)
    expect(view.said()).toEqual([
      '1:1',
      '1 damaged 2 11 the checksum does not fit',
      ...range(12, 13),
      '1 damaged 14 14 the row is no stored item',
      ...range(15, 16),
      '1 attemptEnded 16 true',
      '1 jobEnded COMPLETED',
    ])
    expect(rig.events.filter(({ name }) => name === 'warning')).toHaveLength(2)
  })

  test('E23 an item that claims a range nobody may write hides nothing behind it', async () => {
    const rig = aFollowRig()
    await rig.store([aStart(), { ...aBatch(2, 1), endSequence: Number.MAX_SAFE_INTEGER }, aBatch(3, 2), anEnd(5)])
    rig.set({ state: 'COMPLETED' })
    const view = rig.follow()
    await rig.clock.advance(0)
    expect(view.said()).toEqual([
      '1:1',
      '1 damaged 2 2 more than 50 events in one item',
      ...range(3, 5),
      '1 attemptEnded 5 true',
      '1 jobEnded COMPLETED',
    ])
  })

  test('the next page is on its way while one is being used', async () => {
    const rig = aFollowRig()
    await rig.store(Array.from({ length: 40 }, (_, place) => aBatch(1 + place, 1)))
    const replay = createReplay({ tables: rig.counted, clock: rig.clock })
    const pages = replay.pages(log, 1, 50)
    expect((await pages.next()).value).toHaveLength(16)
    expect(rig.reads).toHaveLength(2)
    await pages.return()
  })
})
