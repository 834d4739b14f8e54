import { afterEach, expect, test } from 'vitest'
import { createWaitingLine } from '../../src/batch/waiting-line.ts'
import { settle } from '../../src/sim/virtual-clock.ts'
import { aRig, Refused, type Rig, watch } from './rig.ts'

// Orders of events found by asking which one would break it.

const rigs: Rig[] = []
const rig = (...options: Parameters<typeof aRig>): Rig => {
  const made = aRig(...options)
  rigs.push(made)
  return made
}

afterEach(async () => {
  for (const { batcher, clock } of rigs.splice(0)) {
    batcher.revoke()
    await settle()
    expect(clock.timers).toBe(0)
    expect(batcher.actor.getSnapshot().status).toBe('done')
  }
})

test('a flush that is acknowledged before the turn ends is followed by the next, not joined by it', async () => {
  const texts: string[] = []
  const { add, batcher } = rig(
    { heldCount: 60, heldBytes: 200 },
    { flush: ({ items }) => Promise.resolve(void texts.push(items.join(''))) },
  )
  add(...'abcdefghij')
  expect(texts).toEqual(['abc'])
  await batcher.drain()
  expect(texts).toEqual(['abc', 'def', 'ghi', 'j'])
})

test('items added from inside flush go into a later batch', async () => {
  const texts: string[] = []
  const { add, batcher } = rig(
    { heldCount: 60, heldBytes: 200 },
    {
      flush: async ({ items }) => {
        texts.push(items.join(''))
        if (texts.length === 1) add('d', 'e', 'f', 'g')
      },
    },
  )
  add('a', 'b', 'c')
  await batcher.drain()
  expect(texts).toEqual(['abc', 'def', 'g'])
})

test('a revoke from inside flush gives back the batch that is being flushed', async () => {
  let given: readonly string[] = []
  const reports: unknown[] = []
  const { add, batcher } = rig(
    {},
    {
      flush: async () => {
        given = batcher.revoke()
      },
      flushed: (report) => reports.push(report),
    },
  )
  add('a', 'b')
  const late = watch(batcher.barrier('X'))
  await settle()
  expect(given).toEqual(['a', 'b', 'X'])
  expect(late.state).toBe('BATCHER_CLOSED')
  expect(reports).toEqual([])
  expect(batcher.held.count).toBe(0)
})

test('a drain from inside flush closes after that batch', async () => {
  let drained = { state: '' }
  const { add, batcher } = rig(
    {},
    {
      flush: async () => {
        drained = watch(batcher.drain())
      },
    },
  )
  add('a', 'b', 'c')
  await settle()
  expect(drained.state).toBe('resolved')
})

test('retry and discard from inside flush do nothing', async () => {
  let given: readonly string[] | undefined
  const { add, batcher, reports } = rig(
    {},
    {
      flush: async () => {
        batcher.retry()
        given = batcher.discard()
      },
    },
  )
  add('a', 'b', 'c')
  await settle()
  expect(given).toEqual([])
  expect(reports).toMatchObject([{ attempts: 1 }])
})

test('retry and discard of a batcher that has nothing failing do nothing', async () => {
  const { add, batcher, flushes } = rig()
  batcher.retry()
  expect(batcher.discard()).toEqual([])
  add('a')
  batcher.retry()
  expect(batcher.discard()).toEqual([])
  expect(batcher.held.count).toBe(1)
  expect(flushes).toEqual([])
})

test('the owner may answer from inside stuck, several times', async () => {
  const answers: string[] = []
  const { add, batcher, last, texts } = rig(
    {},
    {
      stuck: ({ items }) => {
        answers.push(items.join(''))
        if (answers.length === 1) {
          batcher.retry()
          batcher.retry()
          expect(batcher.discard()).toEqual([])
        } else expect(batcher.discard()).toEqual(['a', 'b', 'c'])
      },
    },
  )
  add('a', 'b', 'c', 'd', 'e', 'f')
  await last().refuse()
  await last().refuse()
  expect(answers).toEqual(['abc', 'abc'])
  expect(texts()).toEqual(['a b c', 'a b c', 'd e f'])
})

test('an owner that revoked before it could be asked is not asked', async () => {
  const { add, batcher, flushes, stuck } = rig()
  add('a', 'b', 'c')
  const ending = flushes[0]?.refuse()
  await Promise.resolve()
  batcher.revoke()
  await ending
  expect(stuck).toEqual([])
})

test('the owner is asked once, however often the stuck batcher is told something', async () => {
  const { add, batcher, last, stuck } = rig()
  add('a', 'b', 'c')
  await last().refuse()
  watch(batcher.drain())
  batcher.flushNow()
  await settle()
  expect(stuck).toEqual(['a b c'])
})

test('a drain during a back-off waits for it and loses nothing', async () => {
  const { add, batcher, clock, last, texts } = rig()
  add('a', 'b', 'c', 'd')
  await last().fail()
  const drained = watch(batcher.drain())
  await settle()
  expect(drained.state).toBe('pending')
  await clock.advance(10)
  await last().acknowledge()
  await last().acknowledge()
  expect(drained.state).toBe('resolved')
  expect(texts()).toEqual(['a b c', 'a b c', 'd'])
})

test('a revoke during a back-off stops the timer', async () => {
  const { add, batcher, clock, last } = rig()
  add('a', 'b', 'c')
  await last().fail()
  expect(clock.timers).toBe(1)
  expect(batcher.revoke()).toEqual(['a', 'b', 'c'])
  expect(clock.timers).toBe(0)
})

test('a discard lets in those who wait', async () => {
  const { add, batcher, last, texts } = rig()
  add('a', 'b', 'c', 'd', 'e', 'f')
  const waits = ['g', 'h', 'i'].map((item) => watch(batcher.add(item)))
  await last().refuse()
  expect(batcher.discard()).toEqual(['a', 'b', 'c'])
  await settle()
  expect(waits.map(({ state }) => state)).toEqual(['resolved', 'resolved', 'resolved'])
  expect(texts()).toEqual(['a b c', 'd e f'])
  expect(batcher.held.count).toBe(6)
})

test('a discard of the last batch ends a drain', async () => {
  const { add, batcher, last } = rig()
  add('a')
  const drained = watch(batcher.drain())
  await last().refuse()
  expect(drained.state).toBe('pending')
  batcher.discard()
  await settle()
  expect(drained.state).toBe('resolved')
})

test('a discarded barrier says so', async () => {
  const { batcher, last } = rig()
  const barrier = watch(batcher.barrier('X'))
  await last().refuse()
  expect(batcher.discard()).toEqual(['X'])
  await settle()
  expect(barrier.state).toBe('BATCH_DISCARDED')
})

test('a flush hook that throws at once has failed like any other', async () => {
  let calls = 0
  const { add, batcher, clock } = rig(
    {},
    {
      flush: () => {
        calls += 1
        if (calls < 3) throw new Error('no promise at all')
        return Promise.resolve()
      },
    },
  )
  add('a', 'b', 'c')
  await clock.advance(100)
  expect(calls).toBe(3)
  expect(batcher.held.count).toBe(0)
})

test('a flush hook that throws a refusal at once is stuck', async () => {
  const { add, stuck } = rig(
    {},
    {
      flush: () => {
        throw new Refused('at once')
      },
    },
  )
  add('a', 'b', 'c')
  await settle()
  expect(stuck).toEqual(['a b c'])
})

test('telemetry that throws does not break the work', async () => {
  const { add, batcher, last, texts } = rig(
    {},
    {
      flushed: () => {
        throw new Error('the sink is full')
      },
    },
  )
  add('a', 'b', 'c', 'd', 'e', 'f')
  await last().acknowledge()
  await last().acknowledge()
  expect(texts()).toEqual(['a b c', 'd e f'])
  expect(batcher.held.count).toBe(0)
})

test('an item that cannot be measured is refused and changes nothing', async () => {
  const sizes: Record<string, number> = { bad: Number.NaN, negative: -1, endless: Number.POSITIVE_INFINITY }
  const { add, batcher } = rig({}, { sizeOf: (item) => sizes[item] ?? 1 })
  for (const item of Object.keys(sizes)) expect(() => batcher.add(item)).toThrow('bytes')
  await expect(batcher.barrier('bad')).rejects.toThrow('bytes')
  add('a')
  expect(batcher.held).toMatchObject({ count: 1, bytes: 1 })
})

test('a fold that throws is the answer to its own producer, also when it had to wait', async () => {
  const fold = () => {
    throw new Error('cannot be folded')
  }
  const { add, batcher, last, texts } = rig({}, { merge: { key: (item) => item[0], fold } })
  add('a', 'b')
  expect(() => batcher.add('a2')).toThrow('cannot be folded')
  add('c', 'd', 'e', 'f')
  const first = watch(batcher.add('g'))
  const second = watch(batcher.add('g2'))
  const third = watch(batcher.add('h'))
  await last().acknowledge()
  expect([first.state, second.state, third.state]).toEqual(['resolved', 'Error: cannot be folded', 'resolved'])
  expect(texts()).toEqual(['a b c', 'd e f'])
})

test('a producer that adds from its own continuation keeps its place behind those who already wait', async () => {
  const { add, batcher, clock, last, texts } = rig()
  add('a', 'b', 'c', 'd', 'e', 'f')
  const eager = batcher.add('g')?.then(() => batcher.add('z'))
  const others = ['h', 'i', 'j'].map((item) => watch(batcher.add(item)))
  await last().acknowledge()
  await last().acknowledge()
  await last().acknowledge()
  await eager
  await clock.advance(100)
  expect(others.map(({ state }) => state)).toEqual(['resolved', 'resolved', 'resolved'])
  expect(texts()).toEqual(['a b c', 'd e f', 'g h i', 'j z'])
})

test('a drain after a revoke, and a revoke after a drain, are harmless', async () => {
  const { batcher } = rig()
  await batcher.drain()
  expect(batcher.revoke()).toEqual([])
  await batcher.drain()
  const other = rig()
  other.batcher.revoke()
  await expect(other.batcher.drain()).rejects.toMatchObject({ code: 'BATCHER_CLOSED' })
})

test('a barrier right behind a barrier keeps the order', async () => {
  const { batcher, last, texts } = rig()
  const both = [watch(batcher.barrier('X')), watch(batcher.barrier('Y'))]
  await last().acknowledge()
  expect(both.map(({ state }) => state)).toEqual(['resolved', 'pending'])
  await last().acknowledge()
  expect(both.map(({ state }) => state)).toEqual(['resolved', 'resolved'])
  expect(texts()).toEqual(['X', 'Y'])
})

test('flushNow does not rush what comes after the batch it was asked for', async () => {
  const { add, batcher, clock, flushes, last } = rig({ heldCount: 60, heldBytes: 200 })
  add('a', 'b', 'c', 'd')
  batcher.flushNow()
  add('e', 'f', 'g')
  await last().acknowledge()
  await last().acknowledge()
  expect(flushes).toHaveLength(2)
  await clock.advance(100)
  expect(last()).toMatchObject({ text: 'g', trigger: 'age' })
})

test('the wall clock may jump; ages do not', async () => {
  const { add, clock, flushes } = rig()
  add('a')
  await settle()
  clock.setWall(0)
  await clock.advance(99)
  expect(flushes).toEqual([])
  await clock.advance(1)
  expect(flushes).toMatchObject([{ text: 'a', at: 100 }])
})

test('ten thousand waiting producers are let in without moving each other', () => {
  const line = createWaitingLine()
  const entered: number[] = []
  let room = 0
  for (let n = 0; n < 10_000; n++) {
    line.join({ enter: () => entered.length < room && entered.push(n) > 0, refuse: () => {} })
  }
  for (room = 1; room <= 10_000; room++) line.letIn()
  expect(line.isEmpty()).toBe(true)
  expect(entered).toEqual(Array.from({ length: 10_000 }, (_, n) => n))
})
