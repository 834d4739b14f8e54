import { describe, expect, test } from 'vitest'
import { createNotices } from '../../src/jobs/notices.ts'
import { createLocalService } from '../../src/worker/local-service.ts'
import { createOwnJobs } from '../../src/worker/own-jobs.ts'
import { aClosing, aRequest, createHarness } from '../support/harness.ts'

const rig = () => {
  const harness = createHarness({
    queue: 'embedded',
    jobs: { retry: { maxAttempts: 2, backoffBaseMs: 1_000 } as never },
  })
  const { store } = harness.node('a')
  const service = createLocalService({ store, notices: createNotices(), stored: () => {} })
  const own = createOwnJobs({ clock: harness.clock, service, claimJob: store.claimJob })
  const claim = (waitMs = 0, signal?: AbortSignal) =>
    harness.run(own.claim({ queue: 'default', workerId: 'me', max: 8, waitMs, ...(signal ? { signal } : {}) }))
  return { harness, store, own, claim }
}

describe('own jobs', () => {
  test('what others left in the queue is not offered', async () => {
    const { store, own, claim } = rig()
    await store.enqueue(aRequest())
    const { jobId } = await store.enqueue(aRequest())
    expect(await claim()).toEqual([])
    own.add(jobId, 'default')
    expect((await claim()).map(({ hold }) => hold.jobId)).toEqual([jobId])
    expect(await claim()).toEqual([])
  })

  test('a claim that waits is woken by a job that comes', async () => {
    const { harness, store, own } = rig()
    const waiting = own.claim({ queue: 'default', workerId: 'me', max: 1, waitMs: 20_000 })
    const { jobId } = await store.enqueue(aRequest())
    own.add(jobId, 'default')
    expect((await waiting).map(({ hold }) => hold.jobId)).toEqual([jobId])
    expect(harness.clock.timers).toBe(0)
  })

  test('a failed attempt is offered again when its back-off has passed, and never after its end', async () => {
    const { harness, store, own, claim } = rig()
    const { jobId } = await store.enqueue(aRequest())
    own.add(jobId, 'default')
    const [first] = await claim()
    if (!first) throw new Error('nothing was offered')
    await own.settle(first.hold, { kind: 'failed', error: 'x' }, aClosing(first.hold))
    expect(await claim()).toEqual([])
    const before = harness.clock.now()
    const [second] = await claim(60_000)
    if (!second) throw new Error('nothing was offered')
    expect(second.hold.attempt).toBe(2)
    expect(harness.clock.now()).toBeGreaterThan(before)
    expect(own.left).toBe(1)
    await own.settle(second.hold, { kind: 'failed', error: 'x' }, aClosing(second.hold))
    expect(own.left).toBe(0)
    expect(await claim()).toEqual([])
  })

  test('a job that was cancelled while it waited is let go', async () => {
    const { store, own, claim } = rig()
    const { jobId } = await store.enqueue(aRequest({ delayMs: 1_000 }))
    own.add(jobId, 'default')
    await store.cancel(jobId)
    expect(await claim()).toEqual([])
    expect(own.left).toBe(0)
  })

  test('waiting ends with the signal, and leaves no timer behind', async () => {
    const { harness, own } = rig()
    const stop = new AbortController()
    const waiting = own.claim({ queue: 'default', workerId: 'me', max: 1, waitMs: 20_000, signal: stop.signal })
    await harness.clock.advance(10)
    stop.abort()
    expect(await waiting).toEqual([])
    expect(harness.clock.timers).toBe(0)
  })
})
