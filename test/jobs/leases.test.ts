import { describe, expect, test } from 'vitest'
import { eventsTable, logId } from '../../src/log/keys.ts'
import { aClosing, aRequest, claimNone, claimOne, createHarness, type Harness, type Node } from '../support/harness.ts'

const lease = 60_000

/** Sweeps now and again while time passes, as a sweeper would. */
const sweepFor = async (harness: Harness, node: Node, ms: number, everyMs = 10_000): Promise<void> => {
  for (let passed = 0; passed < ms; passed += everyMs) {
    await harness.clock.advance(everyMs)
    await node.store.sweep.run()
  }
}
/** Long enough for any dead worker to be noticed: two leases and a sweep. */
const untilExpired = 2 * lease + 20_000
const oneLine = (jobId: string, attempt: number) => ({
  actions: [
    {
      kind: 'put' as const,
      table: eventsTable.name,
      row: { log_id: logId(jobId, attempt), sequence: 1, event_payload: Buffer.from('start') },
    },
  ],
})

describe.each(['memory', 'embedded'] as const)('leases over the %s queue', (kind) => {
  test('C01 a worker that was paused past its lease is refused in everything it does, and changes nothing', async () => {
    const harness = createHarness({ queue: kind })
    const [paused, other] = [harness.node('paused'), harness.node('other')]
    const { jobId } = await paused.store.enqueue(aRequest())
    const { hold } = await claimOne(paused, 'paused')
    await sweepFor(harness, other, untilExpired)
    const before = await harness.row(jobId)
    expect(before).toMatchObject({ state: 'SCHEDULED', attempt: 1 })
    const lost = { code: 'CLAIM_LOST', jobId }
    await expect(paused.store.renew(hold)).rejects.toMatchObject(lost)
    await expect(paused.store.settle(hold, { kind: 'done' }, aClosing(hold))).rejects.toMatchObject(lost)
    expect(await harness.row(jobId)).toEqual(before)
    const second = await claimOne(other, 'other')
    expect(second.hold.attempt).toBe(2)
    await expect(paused.store.renew(hold)).rejects.toMatchObject(lost)
    await expect(paused.store.release(hold)).rejects.toMatchObject(lost)
    await expect(paused.store.settle(hold, { kind: 'failed', error: 'x' }, aClosing(hold))).rejects.toMatchObject(lost)
    expect(await harness.row(jobId)).toMatchObject({ state: 'RUNNING', attempt: 2, worker_id: 'other', renewals: 0 })
  })

  test('C02 when another worker has finished the job, its result stands', async () => {
    const harness = createHarness({ queue: kind })
    const [paused, other] = [harness.node('paused'), harness.node('other')]
    const { jobId } = await paused.store.enqueue(aRequest())
    const { hold } = await claimOne(paused, 'paused')
    await sweepFor(harness, other, untilExpired)
    const second = await claimOne(other, 'other')
    await other.store.settle(second.hold, { kind: 'done', result: 'second' }, aClosing(second.hold))
    const late = paused.store.settle(hold, { kind: 'done', result: 'first' }, aClosing(hold, 'stale'))
    await expect(late).rejects.toMatchObject({ code: 'CLAIM_LOST' })
    expect(await other.store.get(jobId)).toMatchObject({ state: 'COMPLETED', result: 'second', attempt: 2 })
    expect(await harness.truth.get(eventsTable.name, [logId(jobId, 1), 2])).toBeUndefined()
  })

  test.each(['lostReply', 'lostRequest'] as const)(
    'C05 a settle whose outcome is unknown (%s) is found out',
    async (fault) => {
      const harness = createHarness({ queue: kind })
      const node = harness.node('a')
      const { jobId } = await node.store.enqueue(aRequest())
      const { hold } = await claimOne(node)
      node.tables.inject(fault)
      const settled = await harness.run(node.store.settle(hold, { kind: 'done', result: 1 }, aClosing(hold)))
      expect(settled.state).toBe('COMPLETED')
      expect(await node.store.get(jobId)).toMatchObject({ state: 'COMPLETED', result: 1, attempt: 1 })
    },
  )

  test('C05 a claim and a heartbeat whose answers are lost are found out too', async () => {
    const harness = createHarness({ queue: kind })
    const node = harness.node('a')
    await node.store.enqueue(aRequest())
    node.tables.inject('lostReply')
    const { hold } = await harness.run(claimOne(node))
    expect(hold.attempt).toBe(1)
    node.tables.inject('lostReply')
    expect(await harness.run(node.store.renew(hold))).toMatchObject({ cancelRequested: false })
    expect(await claimNone(node)).toBe(true)
  })

  test('C06 an equal settle twice is accepted; a different one is refused and the first stands', async () => {
    const harness = createHarness({
      queue: kind,
      jobs: { retry: { maxAttempts: 2, backoffBaseMs: 0, backoffCapMs: 0 } },
    })
    const node = harness.node('a')
    const { jobId } = await node.store.enqueue(aRequest())
    const { hold } = await claimOne(node)
    const settle = (text: string) => node.store.settle(hold, { kind: 'failed', error: 'e' }, aClosing(hold, text))
    expect((await settle('exit 1')).state).toBe('SCHEDULED')
    expect((await settle('exit 1')).state).toBe('SCHEDULED')
    await expect(settle('exit 2')).rejects.toMatchObject({ code: 'CLAIM_LOST' })
    expect(await harness.row(jobId)).toMatchObject({ failed_attempts: 1, attempt: 1 })
    const second = await claimOne(node)
    expect((await settle('exit 1')).state).toBe('RUNNING')
    await node.store.settle(second.hold, { kind: 'done' }, aClosing(second.hold))
    expect((await settle('exit 1')).state).toBe('COMPLETED')
    await expect(settle('exit 2')).rejects.toMatchObject({ code: 'CLAIM_LOST' })
  })

  test('C07 of a failure and a completion that race exactly one ends the job', async () => {
    const harness = createHarness({ queue: kind })
    const [a, b] = [harness.node('a', { slow: 0.5 }), harness.node('b', { slow: 0.5 })]
    for (let round = 0; round < 50; round++) {
      const { jobId } = await harness.run(a.store.enqueue(aRequest()))
      const { hold } = await harness.run(claimOne(a))
      const outcomes = await harness.run(
        Promise.allSettled([
          a.store.settle(hold, { kind: 'done' }, aClosing(hold, 'exit 0')),
          b.store.settle(hold, { kind: 'giveUp', error: 'e' }, aClosing(hold, 'exit 1')),
        ]),
      )
      expect(outcomes.filter((outcome) => outcome.status === 'fulfilled')).toHaveLength(1)
      const winner = outcomes[0]?.status === 'fulfilled' ? 'COMPLETED' : 'FAILED'
      expect(await harness.row(jobId)).toMatchObject({ state: winner })
    }
  })

  test('C08 of a cancel and a completion that race exactly one ends the job, and the caller is told which', async () => {
    const harness = createHarness({ queue: kind })
    const [a, b] = [harness.node('a', { slow: 0.5 }), harness.node('b', { slow: 0.5 })]
    const told = new Set<string>()
    for (let round = 0; round < 50; round++) {
      const { jobId } = await harness.run(a.store.enqueue(aRequest()))
      const { hold } = await harness.run(claimOne(a))
      const [settled, cancelled] = await harness.run(
        Promise.all([a.store.settle(hold, { kind: 'done' }, aClosing(hold)), b.store.cancel(jobId)]),
      )
      expect(settled.state).toBe('COMPLETED')
      told.add(`${cancelled.state} ${cancelled.requested}`)
      expect(await harness.row(jobId)).toMatchObject({ state: 'COMPLETED' })
    }
    expect(told).toEqual(new Set(['COMPLETED false', 'RUNNING true']))
  })

  test('C09 a heartbeat or a completion that comes late is accepted as long as nobody expired the attempt', async () => {
    const harness = createHarness({ queue: kind })
    const node = harness.node('a')
    await node.store.enqueue(aRequest())
    const { hold } = await claimOne(node)
    await harness.clock.advance(100 * lease)
    expect(await node.store.renew(hold)).toEqual({ cancelRequested: false, watchedUntil: undefined })
    await harness.clock.advance(100 * lease)
    expect((await node.store.settle(hold, { kind: 'done' }, aClosing(hold))).state).toBe('COMPLETED')
  })

  test.each([-5 * 60_000, 5 * 60_000])(
    'C10 a wall clock that is wrong by %d ms takes no job from a live worker',
    async (skew) => {
      const harness = createHarness({ queue: kind })
      const worker = harness.node('worker')
      const observer = harness.node('observer', {}, { now: () => harness.clock.now() + skew })
      const { jobId } = await worker.store.enqueue(aRequest())
      const { hold } = await claimOne(worker)
      for (let beat = 0; beat < 60; beat++) {
        await harness.clock.advance(20_000)
        await worker.store.renew(hold)
        await observer.store.sweep.run()
        if (beat === 20) harness.clock.setWall(harness.clock.now() - 60 * 60_000)
        if (beat === 40) harness.clock.setWall(harness.clock.now() + 24 * 60 * 60_000)
      }
      expect(await harness.row(jobId)).toMatchObject({ state: 'RUNNING', attempt: 1 })
      await sweepFor(harness, observer, untilExpired + Math.abs(skew))
      expect(await harness.row(jobId)).toMatchObject({ state: 'SCHEDULED' })
    },
  )

  test('C11 a worker that dies without a word: the job runs again within two leases and a sweep', async () => {
    const harness = createHarness({ queue: kind })
    const [dead, alive] = [harness.node('dead'), harness.node('alive')]
    const { jobId } = await dead.store.enqueue(aRequest())
    const { hold } = await claimOne(dead, 'dead')
    await dead.store.renew(hold)
    await sweepFor(harness, alive, untilExpired)
    const again = await claimOne(alive, 'alive')
    expect(again.hold).toEqual({ jobId, queue: 'default', attempt: 2 })
    expect(again.job.lostAttempts).toBe(1)
  })

  test('C12 a job that kills every worker fails for good after three, and says so', async () => {
    const harness = createHarness({ queue: kind })
    const node = harness.node('a')
    const { jobId } = await node.store.enqueue(aRequest())
    for (let times = 1; times <= 3; times++) {
      const { hold } = await claimOne(node)
      await harness.truth.commit([oneLine(jobId, hold.attempt)])
      await sweepFor(harness, node, untilExpired)
    }
    expect(await node.store.get(jobId)).toMatchObject({ state: 'FAILED', error: 'worker lost ×3', attempt: 3 })
    expect(await claimNone(node)).toBe(true)
  })

  test('C12 claims that nobody ever heard of have a limit of their own', async () => {
    const harness = createHarness({ queue: kind })
    const node = harness.node('a')
    const { jobId } = await node.store.enqueue(aRequest())
    for (let times = 1; times <= 20; times++) {
      expect(await harness.row(jobId)).toMatchObject({ state: 'SCHEDULED' })
      await claimOne(node)
      await sweepFor(harness, node, untilExpired)
    }
    expect(await node.store.get(jobId)).toMatchObject({ state: 'FAILED', error: 'worker lost ×20', lostAttempts: 0 })
  })

  test('C13 two sweepers at once take a job once', async () => {
    const harness = createHarness({ queue: kind })
    const [a, b] = [harness.node('a', { slow: 0.3 }), harness.node('b', { slow: 0.3 })]
    const { jobId } = await harness.run(a.store.enqueue(aRequest()))
    const { hold } = await harness.run(claimOne(a))
    await harness.run(a.store.renew(hold))
    let expired = 0
    for (let passed = 0; passed < untilExpired + 30_000; passed += 10_000) {
      await harness.clock.advance(10_000)
      const swept = await harness.run(Promise.all([a.store.sweep.run(), b.store.sweep.run()]))
      expired += swept[0].expired + swept[1].expired
    }
    expect(expired).toBe(1)
    expect(await harness.row(jobId)).toMatchObject({ state: 'SCHEDULED', attempt: 1, lost_attempts: 1 })
    await harness.run(claimOne(a))
    expect(await harness.run(claimNone(b))).toBe(true)
  })

  test('a live worker is never taken for a dead one, however often it is looked at', async () => {
    const harness = createHarness({ queue: kind })
    const node = harness.node('a')
    const { jobId } = await node.store.enqueue(aRequest())
    const { hold } = await claimOne(node)
    for (let beat = 0; beat < 100; beat++) {
      await sweepFor(harness, node, 20_000, 1_000)
      await node.store.renew(hold)
    }
    expect(await harness.row(jobId)).toMatchObject({ state: 'RUNNING', attempt: 1, renewals: 100 })
  })

  test('what the workers of a dead process held is expired at once, and nothing else', async () => {
    const harness = createHarness({ queue: kind })
    const node = harness.node('a')
    for (const _ of [1, 2, 3]) await node.store.enqueue(aRequest())
    await claimOne(node, 'dead/1')
    await claimOne(node, 'dead/2')
    const alive = await claimOne(node, 'alive/1')
    const held = await node.store.sweep.heldBy('dead/')
    expect(held.map(({ attempt }) => attempt)).toEqual([1, 1])
    expect(await node.store.sweep.expireWorkers('dead/')).toBe(2)
    expect(await node.store.sweep.heldBy('dead/')).toEqual([])
    expect((await node.store.renew(alive.hold)).cancelRequested).toBe(false)
    expect((await claimOne(node, 'alive/2')).hold.attempt).toBe(2)
    expect((await claimOne(node, 'alive/3')).hold.attempt).toBe(2)
  })
})
