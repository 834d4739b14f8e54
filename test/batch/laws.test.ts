import { afterEach, describe, expect, test } from 'vitest'
import { settle } from '../../src/sim/virtual-clock.ts'
import { aRig, type Rig, watch } from './rig.ts'

const rigs: Rig[] = []
const rig = (...options: Parameters<typeof aRig>): Rig => {
  const made = aRig(...options)
  rigs.push(made)
  return made
}

/** Whatever a test did: once revoked, nothing of its batcher is left. */
afterEach(async () => {
  for (const { batcher, clock } of rigs.splice(0)) {
    batcher.revoke()
    await settle()
    expect(clock.timers).toBe(0)
    expect(batcher.held).toMatchObject({ count: 0, bytes: 0 })
    expect(batcher.actor.getSnapshot().status).toBe('done')
  }
})

describe('B1', () => {
  test('B1 the clock starts at the first item put into an empty buffer, not at the last flush', async () => {
    const { add, clock, flushes, last } = rig()
    add('a', 'b', 'c')
    await last().acknowledge()
    await clock.advance(5_000)
    add('d')
    await clock.advance(60)
    add('e')
    await clock.advance(39)
    expect(flushes).toHaveLength(1)
    await clock.advance(1)
    expect(last()).toMatchObject({ text: 'd e', trigger: 'age', at: 5_100 })
  })
  test('B1 the age of what came during a flush counts from its own arrival', async () => {
    const { add, clock, last, flushes } = rig()
    add('a', 'b', 'c')
    await clock.advance(30)
    add('d')
    await clock.advance(20)
    await last().acknowledge()
    await clock.advance(79)
    expect(flushes).toHaveLength(1)
    await clock.advance(1)
    expect(last()).toMatchObject({ text: 'd', trigger: 'age', at: 130 })
  })
  test('B1 what grew old during a flush goes out when the flush ends', async () => {
    const { add, clock, last } = rig()
    add('a', 'b', 'c', 'd')
    await clock.advance(500)
    await last().acknowledge()
    expect(last()).toMatchObject({ text: 'd', trigger: 'age', at: 500 })
  })
  test('B1 a batch that fills within one turn starts no timer', async () => {
    const { add, clock, flushes } = rig()
    add('a', 'b', 'c')
    expect(flushes).toHaveLength(1)
    expect(clock.timers).toBe(0)
    await settle()
    expect(clock.timers).toBe(0)
  })
})

test('B2 one flush is in flight; meanwhile items collect up to the mark', async () => {
  const { add, batcher, flushes, last, texts } = rig()
  add('a', 'b', 'c', 'd', 'e', 'f')
  await settle()
  expect(flushes).toHaveLength(1)
  expect(batcher.held).toMatchObject({ count: 6, bytes: 6 })
  const seventh = watch(batcher.add('g'))
  await settle()
  expect(seventh.state).toBe('pending')
  await last().acknowledge()
  expect(seventh.state).toBe('resolved')
  expect(texts()).toEqual(['a b c', 'd e f'])
})

describe('B3', () => {
  test('B3 a flush that failed is tried again, first in line, with growing pauses', async () => {
    const { add, batcher, clock, flushes, last, texts, reports } = rig()
    add('a', 'b', 'c', 'd', 'e', 'f')
    await last().fail()
    expect(batcher.held.count).toBe(6)
    expect(flushes).toHaveLength(1)
    await clock.advance(10)
    expect(texts()).toEqual(['a b c', 'a b c'])
    await last().fail()
    await clock.advance(20)
    await last().acknowledge()
    expect(texts()).toEqual(['a b c', 'a b c', 'a b c', 'd e f'])
    expect(reports).toMatchObject([{ items: ['a', 'b', 'c'], trigger: 'count', count: 3, bytes: 3, attempts: 3 }])
  })
  test('B3 when the attempts are used up the owner is asked, and nothing is dropped', async () => {
    const { add, batcher, clock, flushes, last, stuck } = rig()
    add('a', 'b', 'c')
    for (let attempt = 1; attempt <= 3; attempt++) {
      await last().fail()
      await clock.advance(1_000)
    }
    expect(stuck).toEqual(['a b c'])
    expect(flushes).toHaveLength(3)
    expect(batcher.held.count).toBe(3)
    batcher.retry()
    await last().acknowledge()
    expect(batcher.held.count).toBe(0)
  })
  test('B3 what was refused goes to the owner at once and is not tried again', async () => {
    const { add, batcher, clock, last, stuck, texts } = rig()
    add('a', 'b', 'c', 'd', 'e', 'f')
    await last().refuse()
    await clock.advance(10_000)
    expect(stuck).toEqual(['a b c'])
    expect(texts()).toEqual(['a b c'])
    expect(batcher.discard()).toEqual(['a', 'b', 'c'])
    expect(texts()).toEqual(['a b c', 'd e f'])
  })
  test('B3 items go on collecting while a batch is stuck', async () => {
    const { add, batcher, last } = rig()
    add('a', 'b', 'c')
    await last().refuse()
    add('d', 'e', 'f')
    expect(watch(batcher.add('g')).state).toBe('pending')
    expect(batcher.held.count).toBe(6)
  })
})

describe('B4', () => {
  test('B4 a producer waits when a batch more would pass the mark, and gets in by its turn', async () => {
    const { add, batcher, last } = rig()
    add('a', 'b', 'c', 'd', 'e', 'f')
    const waits = ['g', 'h', 'i', 'j'].map((item) => watch(batcher.add(item)))
    await last().acknowledge()
    expect(waits.map(({ state }) => state)).toEqual(['resolved', 'resolved', 'resolved', 'pending'])
    expect(batcher.held.count).toBe(6)
    await last().acknowledge()
    expect(waits.at(-1)?.state).toBe('resolved')
    expect(last().text).toBe('g h i')
  })
  test('B4 the mark in bytes holds as well', async () => {
    const { add, batcher, last } = rig({ count: 100, heldCount: 1_000 })
    add('aaaaa', 'bbbbb', 'ccccc', 'ddddd')
    expect(batcher.held.bytes).toBe(20)
    const fifth = watch(batcher.add('e'))
    await settle()
    expect(fifth.state).toBe('pending')
    await last().acknowledge()
    expect(fifth.state).toBe('resolved')
  })
  test('B4 an item larger than the mark gets in when nothing else is held, without waiting for age', async () => {
    const { add, batcher, clock, last, texts } = rig()
    add('a')
    const giant = 'g'.repeat(50)
    const wait = watch(batcher.add(giant))
    expect(last()).toMatchObject({ text: 'a', trigger: 'bytes' })
    expect(wait.state).toBe('pending')
    await last().acknowledge()
    expect(wait.state).toBe('resolved')
    expect(texts()).toEqual(['a', giant])
    expect(clock.monotonic()).toBe(0)
  })
  test('B4 whoever is too large for the room there is does not wait for the age of others', async () => {
    const { add, batcher, clock, last, texts } = rig()
    add('a', 'b', 'c', 'd')
    const giant = 'g'.repeat(50)
    const wait = watch(batcher.add(giant))
    await last().acknowledge()
    expect(last()).toMatchObject({ text: 'd', trigger: 'bytes' })
    await last().acknowledge()
    expect(wait.state).toBe('resolved')
    expect(texts()).toEqual(['a b c', 'd', giant])
    expect(clock.monotonic()).toBe(0)
  })
  test('B4 a mark below two batches is refused by name', () => {
    const refusal = (limits: object) => {
      try {
        aRig(limits)
      } catch (fault) {
        return fault
      }
      return undefined
    }
    expect(refusal({ heldCount: 5 })).toMatchObject({ code: 'BATCH_LIMITS', field: 'heldCount', limit: 6 })
    expect(refusal({ heldBytes: 19 })).toMatchObject({ code: 'BATCH_LIMITS', field: 'heldBytes', limit: 20 })
    expect(refusal({ count: 0 })).toMatchObject({ field: 'count' })
    expect(refusal({ count: 2.5 })).toMatchObject({ field: 'count' })
    expect(refusal({ bytes: Number.NaN })).toMatchObject({ field: 'bytes' })
    expect(refusal({ ageMs: Number.POSITIVE_INFINITY })).toMatchObject({ field: 'ageMs' })
    expect(refusal({ retry: { attemptsMax: 0, baseMs: 1, capMs: 1 } })).toMatchObject({ field: 'retry.attemptsMax' })
  })
})

describe('B5', () => {
  test('B5 no batch passes count or bytes; the limit is checked before adding', async () => {
    const { add, flushes, last } = rig({ heldCount: 100, heldBytes: 100 })
    add('aaaa', 'bbbb', 'ccc', 'ddddddd', 'e', 'f', 'g')
    for (let n = 0; n < 3; n++) await last().acknowledge()
    expect(flushes.map(({ text, trigger }) => [text, trigger])).toEqual([
      ['aaaa bbbb', 'bytes'],
      ['ccc ddddddd', 'bytes'],
      ['e f g', 'count'],
    ])
  })
  test('B5 an item larger than the byte limit travels alone', async () => {
    const { add, last, texts } = rig({ heldCount: 100, heldBytes: 100 })
    const large = 'l'.repeat(11)
    add('a', large, 'b')
    await last().acknowledge()
    expect(last()).toMatchObject({ text: large, trigger: 'bytes' })
    await last().acknowledge()
    expect(texts()).toEqual(['a', large])
  })
})

describe('B6', () => {
  test('B6 a barrier flushes what came before it, then itself, and resolves when both are acknowledged', async () => {
    const { add, batcher, flushes, last, clock } = rig()
    add('a', 'b')
    const barrier = watch(batcher.barrier('X'))
    expect(last()).toMatchObject({ text: 'a b', trigger: 'barrier' })
    add('c')
    await last().acknowledge()
    expect(last()).toMatchObject({ text: 'X', trigger: 'barrier' })
    expect(barrier.state).toBe('pending')
    await last().acknowledge()
    expect(barrier.state).toBe('resolved')
    await clock.advance(100)
    expect(flushes.map(({ text }) => text)).toEqual(['a b', 'X', 'c'])
  })
  test('B6 a barrier into an empty buffer makes one flush', () => {
    const { batcher, flushes } = rig()
    watch(batcher.barrier('X'))
    expect(flushes).toMatchObject([{ text: 'X' }])
  })
  test('B6 a barrier waits for room in its turn and is not overtaken', async () => {
    const { add, batcher, flushes, last, clock } = rig()
    add('a', 'b', 'c', 'd', 'e', 'f')
    const barrier = watch(batcher.barrier('X'))
    const late = watch(batcher.add('g'))
    expect(batcher.held.count).toBe(6)
    await last().acknowledge()
    await last().acknowledge()
    await last().acknowledge()
    expect([barrier.state, late.state]).toEqual(['resolved', 'resolved'])
    await clock.advance(100)
    expect(flushes.map(({ text }) => text)).toEqual(['a b c', 'd e f', 'X', 'g'])
  })
  test('B6 a barrier does not resolve when the owner gave up on what came before it', async () => {
    const { add, batcher, last } = rig()
    add('a')
    const barrier = watch(batcher.barrier('X'))
    await last().refuse()
    batcher.discard()
    await last().acknowledge()
    expect(barrier.state).toBe('BATCH_DISCARDED')
  })
})

describe('B7', () => {
  test('B7 close drains: everything is flushed, in order, and then it is closed', async () => {
    const { add, batcher, last, texts, clock } = rig()
    add('a', 'b', 'c', 'd')
    const drained = watch(batcher.drain())
    const late = watch(batcher.add('e'))
    await last().acknowledge()
    expect(last()).toMatchObject({ text: 'd', trigger: 'drain' })
    expect([drained.state, late.state]).toEqual(['pending', 'BATCHER_CLOSED'])
    await last().acknowledge()
    expect(drained.state).toBe('resolved')
    expect(texts()).toEqual(['a b c', 'd'])
    expect(clock.monotonic()).toBe(0)
    expect(await batcher.drain()).toBeUndefined()
  })
  test('B7 a drain in the turn of the first add loses nothing', async () => {
    const { add, batcher, flushes, last } = rig()
    add('a')
    const drained = watch(batcher.drain())
    expect(flushes).toMatchObject([{ text: 'a', trigger: 'drain' }])
    await last().acknowledge()
    expect(drained.state).toBe('resolved')
  })
  test('B7 a drain flushes what waited for room before it', async () => {
    const { add, batcher, last, texts } = rig()
    add('a', 'b', 'c', 'd', 'e', 'f')
    const seventh = watch(batcher.add('g'))
    const drained = watch(batcher.drain())
    for (let n = 0; n < 3; n++) await last().acknowledge()
    expect([seventh.state, drained.state]).toEqual(['resolved', 'resolved'])
    expect(texts()).toEqual(['a b c', 'd e f', 'g'])
  })
  test('B7 revoke abandons: what is held comes back, in order, and a late outcome changes nothing', async () => {
    const { add, batcher, last, reports, texts } = rig()
    add('a', 'b', 'c', 'd', 'e', 'f')
    const waiter = watch(batcher.add('g'))
    const barrier = watch(batcher.barrier('X'))
    const drained = watch(batcher.drain())
    expect(batcher.revoke()).toEqual(['a', 'b', 'c', 'd', 'e', 'f'])
    await last().acknowledge()
    expect([waiter.state, barrier.state, drained.state]).toEqual(Array(3).fill('BATCHER_CLOSED'))
    expect(reports).toEqual([])
    expect(texts()).toEqual(['a b c'])
    expect(batcher.revoke()).toEqual([])
    await expect(batcher.add('h')).rejects.toMatchObject({ code: 'BATCHER_CLOSED' })
    await expect(batcher.drain()).rejects.toMatchObject({ code: 'BATCHER_CLOSED' })
  })
})

describe('B8', () => {
  test('B8 two triggers at one instant make one flush', async () => {
    const { add, clock, flushes, batcher } = rig()
    add('a', 'b')
    await settle()
    clock.setTimeout(() => add('c'), 100)
    await clock.advance(100)
    expect(flushes).toMatchObject([{ text: 'a b', trigger: 'age' }])
    batcher.revoke()

    const other = rig()
    other.clock.setTimeout(() => other.add('c'), 100)
    other.add('a', 'b')
    await other.clock.advance(200)
    expect(other.flushes).toMatchObject([{ text: 'a b c', trigger: 'count' }])
  })
  test('B8 an empty buffer makes no flush', async () => {
    const { batcher, clock, flushes } = rig()
    batcher.flushNow()
    await clock.advance(10_000)
    await batcher.drain()
    expect(flushes).toEqual([])
  })
})

describe('a flight', () => {
  test('of a saturated batcher carries several batches, so that the machine is told of few', async () => {
    const { add, batcher, flushes } = rig({ heldCount: 300, heldBytes: 1_000 }, { flush: async () => {} })
    let events = 0
    batcher.actor.subscribe(() => {
      events += 1
    })
    for (let n = 0; n < 300; n++) add('i')
    await settle()
    expect(batcher.held.count).toBe(0)
    expect(flushes).toEqual([])
    // One for the first batch, which finds the buffer empty, and one for each eight of the hundred.
    expect(events).toBe(14)
  })
  test('flushes its batches one at a time, in order', async () => {
    const { add, texts, last } = rig({ heldCount: 30, heldBytes: 100 })
    add('a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i')
    expect(texts()).toEqual(['a b c'])
    await last().acknowledge()
    expect(texts()).toEqual(['a b c', 'd e f'])
    await last().acknowledge()
    expect(texts()).toEqual(['a b c', 'd e f', 'g h i'])
  })
  test('ends with the batch that fails, which is tried again before those behind it', async () => {
    const { add, batcher, clock, texts, last, reports } = rig({ heldCount: 30, heldBytes: 100 })
    add('a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i')
    await last().acknowledge()
    await last().fail()
    expect(batcher.held.count).toBe(6)
    await clock.advance(10)
    await last().acknowledge()
    await last().acknowledge()
    expect(texts()).toEqual(['a b c', 'd e f', 'd e f', 'g h i'])
    expect(reports.map(({ attempts }) => attempts)).toEqual([1, 2, 1])
  })
  test('gives each of its batches all its attempts', async () => {
    const { add, clock, last, stuck, flushes } = rig({ heldCount: 30, heldBytes: 100 })
    add('a', 'b', 'c', 'd', 'e', 'f')
    for (let failure = 0; failure < 2; failure++) {
      await last().fail()
      await clock.advance(1_000)
    }
    await last().acknowledge()
    for (let failure = 0; failure < 3; failure++) {
      expect(stuck).toEqual([])
      await last().fail()
      await clock.advance(1_000)
    }
    expect(stuck).toEqual(['d e f'])
    expect(flushes).toHaveLength(6)
  })
  test('that is revoked between two batches gives back what was not flushed and flushes nothing more', async () => {
    const { add, batcher, texts, last } = rig({ heldCount: 30, heldBytes: 100 })
    add('a', 'b', 'c', 'd', 'e', 'f', 'g')
    await last().acknowledge()
    const late = last()
    expect(batcher.revoke()).toEqual(['d', 'e', 'f', 'g'])
    await late.acknowledge()
    expect(texts()).toEqual(['a b c', 'd e f'])
  })
})

describe('without linger', () => {
  test('an age of 0 flushes in the microtask after the first add', async () => {
    const { add, flushes, clock } = rig({ ageMs: 0, count: 100, heldCount: 1_000 })
    add('a', 'b')
    expect(flushes).toEqual([])
    await Promise.resolve()
    expect(flushes).toMatchObject([{ text: 'a b', trigger: 'age' }])
    expect(clock.timers).toBe(0)
  })
  test('an age of 0 makes a group of what comes during a flush, and flushes it at the acknowledgement', async () => {
    const { add, last, texts, clock } = rig({ ageMs: 0, count: 100, heldCount: 1_000 })
    add('a')
    await settle()
    add('b')
    await settle()
    add('c')
    await last().acknowledge()
    expect(texts()).toEqual(['a', 'b c'])
    expect(clock.monotonic()).toBe(0)
  })
})

describe('asked', () => {
  test('flushNow flushes at once when nothing is in flight', async () => {
    const { add, batcher, flushes } = rig()
    add('a')
    batcher.flushNow()
    expect(flushes).toMatchObject([{ text: 'a', trigger: 'asked' }])
  })
  test('flushNow waits for the flight, and takes along what came meanwhile', async () => {
    const { add, batcher, flushes, last } = rig()
    add('a', 'b', 'c', 'd')
    batcher.flushNow()
    add('e')
    await last().acknowledge()
    expect(flushes).toMatchObject([{ text: 'a b c' }, { text: 'd e', trigger: 'asked' }])
  })
})

describe('merge', () => {
  const merge = {
    key: (item: string) => (/^\d/.test(item) ? item[0] : undefined),
    fold: (earlier: string, later: string) => earlier + later.slice(1),
  }
  test('an item is folded into the unsealed one with the same key', async () => {
    const { add, clock, last, batcher } = rig({}, { merge })
    add('1a', 'x', '1b')
    expect(batcher.held).toMatchObject({ count: 2, bytes: 4 })
    await clock.advance(100)
    expect(last().text).toBe('1ab x')
  })
  test('what is sealed is not touched any more', async () => {
    const { add, clock, last, texts } = rig({}, { merge })
    add('1a', '2a', '3a', '1b')
    await last().acknowledge()
    await clock.advance(100)
    expect(texts()).toEqual(['1a 2a 3a', '1b'])
  })
  test('a fold that would pass the byte limit comes behind instead', async () => {
    const { add, last, texts, clock } = rig({}, { merge })
    add('1aaaaaa', '1bbbbbb')
    await last().acknowledge()
    await clock.advance(100)
    expect(texts()).toEqual(['1aaaaaa', '1bbbbbb'])
  })
  test('a fold needs no room', async () => {
    const { add, batcher } = rig({ heldBytes: 100, bytes: 50 }, { merge })
    add('a', 'b', 'c', '1a', '2a', '1b')
    expect(batcher.held).toMatchObject({ count: 5 })
  })
})

test('the report says how long items waited and how long the flush took', async () => {
  const { add, clock, last, reports } = rig()
  add('a')
  await clock.advance(100)
  await clock.advance(7)
  await last().acknowledge()
  expect(reports).toEqual([{ items: ['a'], bytes: 1, trigger: 'age', count: 1, waitedMs: 100, tookMs: 7, attempts: 1 }])
})
