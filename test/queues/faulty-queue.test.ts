import { describe, expect, test } from 'vitest'
import { createEmbeddedQueue, queueTable } from '../../src/queues/embedded.ts'
import { createMemoryQueue } from '../../src/queues/memory.ts'
import type { Outgoing, Received } from '../../src/queues/port.ts'
import { createFaultyQueue, type QueueFaultRates } from '../../src/sim/faulty-queue.ts'
import { createSeededRandom } from '../../src/sim/seeded-random.ts'
import { createVirtualClock } from '../../src/sim/virtual-clock.ts'
import { createMemoryTables } from '../../src/tables/memory.ts'
import { queueContract } from '../contract/queue.ts'

const world = (rates: Partial<QueueFaultRates>, seed = 1) => {
  const clock = createVirtualClock()
  const inner = createMemoryQueue({ clock })
  const random = createSeededRandom(seed)
  const faulty = createFaultyQueue({ queue: inner, clock, random }, { rates, delayMsMax: 10_000 })
  const outgoing = (jobId: string): Outgoing => ({
    message: { jobId, queue: 'mail', priority: 'normal', attempt: 0 },
    notBefore: clock.now(),
  })
  const many = Array.from({ length: 100 }, (_, index) => outgoing(`job-${String(index).padStart(2, '0')}`))
  return { clock, inner, ...faulty, many, outgoing }
}
const ids = (received: readonly Received[]) => received.map((one) => one.message?.jobId)
const poll = { max: 1_000, waitMs: 0 }

queueContract(
  'a faulty queue without faults',
  async ({ holdMs }) => {
    const clock = createVirtualClock()
    const inner = createMemoryQueue({ clock }, { holdMs })
    const random = createSeededRandom(1)
    const { queue } = createFaultyQueue({ queue: inner, clock, random }, { rates: {}, delayMsMax: 1_000 })
    return {
      queue,
      name: 'mail',
      now: clock.now,
      elapse: clock.advance,
      inject: async (body) => inner.inject('mail', 'normal', body),
      end: () => queue.close(),
    }
  },
  { clock: 'virtual', order: 'exact', stepMs: 1_000, patienceMs: 20_000 },
)

describe('a faulty queue', () => {
  test('a lost reply: sent, and reported as not sent', async () => {
    const { queue, inner, many, counts } = world({ lostReply: 0.5 })
    const failed = (await queue.send(many)).filter((fault) => fault?.code === 'QUEUE_UNAVAILABLE')
    expect(failed.length).toBe(counts.lostReply)
    expect(counts.lostReply).toBeGreaterThan(20)
    expect(await inner.receive('mail', poll)).toHaveLength(100)
  })

  test('a failure: not sent, and reported so', async () => {
    const { queue, inner, many, counts } = world({ failed: 0.5 })
    expect((await queue.send(many)).filter(Boolean)).toHaveLength(counts.failed)
    expect(await inner.receive('mail', poll)).toHaveLength(100 - counts.failed)
  })

  test('a loss: reported as sent, and gone', async () => {
    const { queue, inner, many, counts } = world({ lost: 0.5 })
    expect((await queue.send(many)).filter(Boolean)).toEqual([])
    expect(counts.lost).toBeGreaterThan(20)
    expect(await inner.receive('mail', poll)).toHaveLength(100 - counts.lost)
  })

  test('a delay: received later, but received', async () => {
    const { queue, inner, many, counts, clock } = world({ delayed: 0.5 })
    await queue.send(many)
    expect(counts.delayed).toBeGreaterThan(20)
    expect((await inner.receive('mail', poll)).length).toBeLessThan(100 - counts.delayed + 5)
    await clock.advance(10_000)
    expect((await inner.receive('mail', poll)).length).toBeGreaterThan(20)
  })

  test('a duplicate: received twice while the first is still in somebody’s hands', async () => {
    const { queue, many, counts } = world({ duplicate: 0.2 })
    await queue.send(many)
    const first = await queue.receive('mail', poll)
    const second = await queue.receive('mail', poll)
    expect(second).toHaveLength(counts.duplicate)
    expect(counts.duplicate).toBeGreaterThan(5)
    expect(ids(first)).toEqual(expect.arrayContaining(ids(second)))
    await queue.finish(first)
    await queue.finish(second)
    expect(await queue.receive('mail', poll)).toEqual([])
  })

  test('another order, and nothing else changed', async () => {
    const { queue, many, counts } = world({ reordered: 1 })
    await queue.send(many)
    const received = ids(await queue.receive('mail', poll))
    expect(counts.reordered).toBe(1)
    expect(received).not.toEqual([...received].sort())
    expect([...received].sort()).toEqual(many.map(({ message }) => message.jobId))
  })

  test('an empty receive: nothing although something is there, after the whole wait', async () => {
    const { queue, many, counts, clock, heal } = world({ emptyReceive: 1 })
    await queue.send(many)
    const waiting = queue.receive('mail', { max: 1, waitMs: 20_000 })
    await clock.advance(20_000)
    expect(await waiting).toEqual([])
    expect(counts.emptyReceive).toBe(1)
    heal()
    expect(await queue.receive('mail', poll)).toHaveLength(100)
  })

  test.each(['finish', 'release', 'extend', 'deadLetter'] as const)('%s fails, done or not', async (verb) => {
    const { queue, many, counts } = world({ finishFails: 1, releaseFails: 1, extendFails: 1, deadLetterFails: 1 })
    await queue.send(many)
    const outcomes: unknown[] = []
    for (const received of await queue.receive('mail', poll)) {
      const work = { finish: () => queue.finish([received]), release: () => queue.release([received], 0) }
      const more = { extend: () => queue.extend([received], 1), deadLetter: () => queue.deadLetter(received, 'x') }
      await { ...work, ...more }[verb]().catch((error: unknown) => outcomes.push(error))
    }
    expect(outcomes).toHaveLength(100)
    expect(counts[`${verb}Fails`]).toBe(100)
    if (verb === 'deadLetter') {
      const buried = (await queue.deadLetters('mail', 1_000)).length
      expect(buried).toBeGreaterThan(20)
      expect(buried).toBeLessThan(80)
    }
  })

  test('no fault after it was healed', async () => {
    const { queue, many, counts, heal } = world({ failed: 1 })
    expect((await queue.send(many)).filter(Boolean)).toHaveLength(100)
    heal()
    expect((await queue.send(many)).filter(Boolean)).toEqual([])
    expect(counts.failed).toBe(100)
  })

  test('the same seed gives the same faults, and one more kind of fault does not move another', async () => {
    const failed = async (rates: Partial<QueueFaultRates>, seed: number) => {
      const { queue, many } = world(rates, seed)
      return (await queue.send(many)).map((fault) => fault?.message === 'the queue was told to fail')
    }
    const alone = await failed({ failed: 0.3 }, 7)
    expect(await failed({ failed: 0.3 }, 7)).toEqual(alone)
    expect(await failed({ failed: 0.3, delayed: 0.9, lost: 0.5 }, 7)).toEqual(alone)
    expect(await failed({ failed: 0.3 }, 8)).not.toEqual(alone)
  })

  test('what travels within a transaction is left alone', () => {
    const clock = createVirtualClock()
    const inner = createEmbeddedQueue({ clock, tables: createMemoryTables([queueTable]) })
    const random = createSeededRandom(1)
    const { queue } = createFaultyQueue({ queue: inner, clock, random }, { rates: { failed: 1 }, delayMsMax: 1 })
    expect(queue.within).toBe(inner.within)
    expect(world({}).queue.within).toBeUndefined()
  })
})
