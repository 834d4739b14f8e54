import { describe, expect, test } from 'vitest'
import { QueueUnavailable } from '../../src/queues/faults.ts'
import type { MemoryQueue } from '../../src/queues/memory.ts'
import type { Message, Queue } from '../../src/queues/port.ts'
import { aClosing, aRequest, claimNone, claimOne, createHarness } from '../support/harness.ts'

const message = (jobId: string, attempt: number): Message => ({
  jobId,
  queue: 'default',
  priority: 'normal',
  attempt,
})
const send = (queue: Queue, jobId: string, attempt: number) =>
  queue.send([{ message: message(jobId, attempt), notBefore: 0 }])

describe.each(['memory', 'embedded'] as const)('messages over the %s queue', (kind) => {
  test('B01 a message delivered to two workers at once: one claim wins, the other drops it', async () => {
    const harness = createHarness({ queue: kind })
    const [a, b] = [harness.node('a'), harness.node('b')]
    const { jobId } = await a.store.enqueue(aRequest())
    await send(harness.queue, jobId, 0)
    const request = { queue: 'default', max: 10, waitMs: 0 }
    const [mine, theirs] = await Promise.all([
      a.store.claim({ ...request, workerId: 'a' }),
      b.store.claim({ ...request, workerId: 'b' }),
    ])
    expect([...mine, ...theirs]).toHaveLength(1)
    const [claim] = [...mine, ...theirs]
    expect((await harness.row(jobId))?.['worker_id']).toBe(claim?.job.workerId)
    expect(await claimNone(a)).toBe(true)
  })

  test('B01 of fifty workers that hold the same hint exactly one wins', async () => {
    const harness = createHarness({ queue: 'memory' })
    const node = harness.node('a')
    const { jobId } = await node.store.enqueue(aRequest())
    for (let copy = 0; copy < 49; copy++) await send(harness.queue, jobId, 0)
    const claims = await Promise.all(
      Array.from({ length: 50 }, (_, n) =>
        node.store.claim({ queue: 'default', workerId: `w${n}`, max: 1, waitMs: 0 }),
      ),
    )
    expect(claims.flat()).toHaveLength(1)
    expect((await harness.row(jobId))?.['attempt']).toBe(1)
  })

  test('B02 a message that comes after the job has ended is dropped, and nothing runs', async () => {
    const harness = createHarness({ queue: kind })
    const node = harness.node('a')
    const { jobId } = await node.store.enqueue(aRequest())
    const { hold } = await claimOne(node)
    await node.store.settle(hold, { kind: 'done' }, aClosing(hold))
    for (const attempt of [0, 1, 2]) await send(harness.queue, jobId, attempt)
    expect(await claimNone(node)).toBe(true)
    expect(await claimNone(node)).toBe(true)
    expect(await claimNone(node)).toBe(true)
    expect(node.events.filter((event) => event.name === 'message.dropped')).toHaveLength(3)
    expect((await node.store.get(jobId)).attempt).toBe(1)
    await harness.clock.advance(24 * 60 * 60_000)
    expect(await harness.queue.receive('default', { max: 10, waitMs: 0 })).toEqual([])
  })

  test('B03 a message for an unknown job comes again a few times and is then put aside with its reason', async () => {
    const harness = createHarness({ queue: kind })
    const node = harness.node('a')
    const stranger = '01890a5d-ac96-774b-bcce-b302099a8057'
    await send(harness.queue, stranger, 0)
    for (let times = 1; times < 5; times++) {
      expect(await claimNone(node)).toBe(true)
      expect(await harness.queue.deadLetters('default', 10)).toEqual([])
      await harness.clock.advance(10_000)
    }
    expect(await claimNone(node)).toBe(true)
    const [letter] = await harness.queue.deadLetters('default', 10)
    expect(letter?.reason).toBe(`job ${stranger} is unknown`)
    expect(letter?.body).toContain(stranger)
  })

  test('B04 messages of earlier attempts that come hours late change nothing', async () => {
    const harness = createHarness({
      queue: kind,
      jobs: { retry: { maxAttempts: 3, backoffBaseMs: 0, backoffCapMs: 0 } },
    })
    const node = harness.node('a')
    const { jobId } = await node.store.enqueue(aRequest())
    const first = await claimOne(node)
    await node.store.settle(first.hold, { kind: 'failed', error: 'e' }, aClosing(first.hold))
    const second = await claimOne(node)
    expect(second.hold.attempt).toBe(2)
    await harness.clock.advance(5 * 60 * 60_000)
    for (const attempt of [0, 1, 7]) await send(harness.queue, jobId, attempt)
    for (let times = 0; times < 3; times++) expect(await claimNone(node)).toBe(true)
    expect(await harness.row(jobId)).toMatchObject({ state: 'RUNNING', attempt: 2 })
  })

  test('an early message is given back with the rest of the delay', async () => {
    const harness = createHarness({ queue: kind })
    const node = harness.node('a')
    const { jobId } = await node.store.enqueue(aRequest({ delayMs: 3_600_000 }))
    await send(harness.queue, jobId, 0)
    expect(await claimNone(node)).toBe(true)
    await harness.clock.advance(3_599_000)
    expect(await claimNone(node)).toBe(true)
    await harness.clock.advance(1_000)
    expect((await claimOne(node)).job.id).toBe(jobId)
  })

  test('jobs of a higher class go first', async () => {
    const harness = createHarness({ queue: kind })
    const node = harness.node('a')
    const ids: string[] = []
    for (const priority of ['low', 'normal', 'high'] as const) {
      ids.push((await node.store.enqueue(aRequest({ priority }))).jobId)
    }
    const order = [await claimOne(node), await claimOne(node), await claimOne(node)].map(({ job }) => job.id)
    expect(order).toEqual(ids.reverse())
  })
})

describe('messages that travel after the commit', () => {
  test('B05 a lost message is sent again by the sweeper, and then ever less often', async () => {
    const lost: Queue[] = []
    const harness = createHarness({
      wrapQueue: (queue) => {
        lost.push(queue)
        return { ...queue, send: async (outgoing) => outgoing.map(() => undefined) }
      },
    })
    const node = harness.node('a')
    const { jobId } = await node.store.enqueue(aRequest())
    const minute = 60_000
    const resent: number[] = []
    for (let minutes = 0; minutes < 24 * 60; minutes++) {
      await harness.clock.advance(minute)
      if ((await node.store.sweep.run()).resent > 0) resent.push(minutes + 1)
    }
    const pauses = resent.slice(1).map((at, index) => at - (resent[index] as number))
    expect(resent[0]).toBe(1)
    expect(pauses).toEqual([15, 30, 60, 120, 240, 480])
    await send(lost[0] as Queue, jobId, 0)
    expect((await claimOne(node)).job.id).toBe(jobId)
  })

  test('B05 two sweepers send the same hint twice at the most, and it is claimed once', async () => {
    const harness = createHarness()
    const [a, b] = [harness.node('a'), harness.node('b')]
    await a.store.enqueue(aRequest())
    await harness.queue.finish(await harness.queue.receive('default', { max: 10, waitMs: 0 }))
    await harness.clock.advance(31_000)
    await Promise.all([a.store.sweep.run(), b.store.sweep.run()])
    await claimOne(a)
    expect(await claimNone(b)).toBe(true)
    expect((await a.store.sweep.run()).resent).toBe(0)
  })

  test('B06 a body that cannot be read is put aside as it is, and the next message is handled', async () => {
    const harness = createHarness()
    const node = harness.node('a')
    const queue = harness.queue as MemoryQueue
    for (const body of ['not json', '{"v":99}', '[]', '{"v":1,"job_id":5}']) queue.inject('default', 'normal', body)
    const { jobId } = await node.store.enqueue(aRequest())
    const claims = await node.store.claim({ queue: 'default', workerId: 'w', max: 10, waitMs: 0 })
    expect(claims.map(({ job }) => job.id)).toEqual([jobId])
    const bodies = (await queue.deadLetters('default', 10)).map((letter) => letter.body)
    expect(bodies.toSorted()).toEqual(['[]', 'not json', '{"v":1,"job_id":5}', '{"v":99}'].toSorted())
  })

  test('B08 C04 a message that could not be deleted comes again and is dropped; the job is not affected', async () => {
    let failing = true
    const harness = createHarness({
      wrapQueue: (queue) => ({
        ...queue,
        finish: async (received) => {
          if (failing) throw new QueueUnavailable('no answer')
          return queue.finish(received)
        },
      }),
    })
    const node = harness.node('a')
    const { jobId } = await node.store.enqueue(aRequest())
    const { hold } = await claimOne(node)
    expect(node.events.some((event) => event.name === 'message.unacknowledged')).toBe(true)
    await node.store.settle(hold, { kind: 'done' }, aClosing(hold))
    await harness.clock.advance(61_000)
    failing = false
    expect(await claimNone(node)).toBe(true)
    expect((await node.store.get(jobId)).attempt).toBe(1)
    await harness.clock.advance(61_000)
    expect(await harness.queue.receive('default', { max: 1, waitMs: 0 })).toEqual([])
  })

  test('B11 B09 a message whose hold has passed is received by another worker; the first one’s claim stands', async () => {
    const harness = createHarness()
    const node = harness.node('a')
    await node.store.enqueue(aRequest())
    const [stale] = await harness.queue.receive('default', { max: 1, waitMs: 0 })
    await harness.clock.advance(61_000)
    const { hold } = await claimOne(node)
    await harness.queue.finish(stale ? [stale] : [])
    await harness.queue.extend(stale ? [stale] : [], 1_000)
    expect(await node.store.settle(hold, { kind: 'done' }, aClosing(hold))).toMatchObject({ state: 'COMPLETED' })
  })

  test('B10 a job may run for longer than a queue can hold a message: nothing is held during a run', async () => {
    const harness = createHarness()
    const [worker, sweeper] = [harness.node('worker'), harness.node('sweeper')]
    const { jobId } = await worker.store.enqueue(aRequest())
    const { hold } = await claimOne(worker)
    const hour = 60 * 60_000
    for (let passed = 0; passed < 13 * hour; passed += 20_000) {
      await harness.clock.advance(20_000)
      await worker.store.renew(hold)
      if (passed % hour === 0) await sweeper.store.sweep.run()
      if (passed % hour === 0) expect(await claimNone(sweeper)).toBe(true)
    }
    await worker.store.settle(hold, { kind: 'done' }, aClosing(hold))
    expect(await worker.store.get(jobId)).toMatchObject({ state: 'COMPLETED', attempt: 1 })
  })

  test('B14 receives that never became a claim count nothing', async () => {
    const harness = createHarness()
    const node = harness.node('a')
    const { jobId } = await node.store.enqueue(aRequest())
    for (let times = 0; times < 50; times++) {
      await harness.queue.receive('default', { max: 1, waitMs: 0 })
      await harness.clock.advance(61_000)
    }
    expect((await claimOne(node)).hold).toEqual({ jobId, queue: 'default', attempt: 1 })
    expect(await harness.row(jobId)).not.toHaveProperty('lost_attempts')
  })
})
