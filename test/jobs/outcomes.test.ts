import { describe, expect, test } from 'vitest'
import { jobsTable } from '../../src/jobs/keys.ts'
import { aClosing, aRequest, claimNone, claimOne, createHarness } from '../support/harness.ts'

const day = 24 * 60 * 60_000

describe.each(['memory', 'embedded'] as const)('outcomes over the %s queue', (kind) => {
  const started = async (options: Parameters<typeof createHarness>[0] = {}) => {
    const harness = createHarness({ queue: kind, ...options })
    const node = harness.node('a')
    const { jobId } = await node.store.enqueue(aRequest())
    const { hold } = await claimOne(node)
    return { harness, node, store: node.store, jobId, hold }
  }

  test('a failed attempt with attempts left comes again after a growing pause, and the last one fails the job', async () => {
    const retry = { maxAttempts: 4, backoffBaseMs: 1_000, backoffCapMs: 3_000 }
    const { harness, node, store, jobId, ...begun } = await started({ jobs: { retry } })
    let hold = begun.hold
    for (const ceiling of [1_000, 2_000, 3_000]) {
      const now = harness.clock.now()
      const settled = await store.settle(hold, { kind: 'failed', error: 'no luck' }, aClosing(hold))
      expect(settled.state).toBe('SCHEDULED')
      expect(settled.notBefore).toBeGreaterThanOrEqual(now + ceiling / 2)
      expect(settled.notBefore).toBeLessThanOrEqual(now + ceiling)
      expect(await claimNone(node)).toBe(true)
      await harness.clock.advance(ceiling)
      hold = (await claimOne(node)).hold
    }
    expect((await store.settle(hold, { kind: 'failed', error: 'no luck' }, aClosing(hold))).state).toBe('FAILED')
    expect(await store.get(jobId)).toMatchObject({ state: 'FAILED', error: 'no luck', attempt: 4, failedAttempts: 4 })
  })

  test('giving up fails the job although attempts are left', async () => {
    const { store, jobId, hold } = await started({
      jobs: { retry: { maxAttempts: 9, backoffBaseMs: 0, backoffCapMs: 0 } },
    })
    expect((await store.settle(hold, { kind: 'giveUp', error: 'no' }, aClosing(hold))).state).toBe('FAILED')
    expect((await store.get(jobId)).error).toBe('no')
  })

  test('later counts nothing, up to a thousand times', async () => {
    const { harness, node, store, jobId, hold } = await started()
    let current = hold
    for (let times = 0; times < 1_000; times++) {
      expect((await store.settle(current, { kind: 'later', inMs: 5 }, aClosing(current))).state).toBe('SCHEDULED')
      await harness.clock.advance(5)
      current = (await claimOne(node)).hold
    }
    expect((await store.settle(current, { kind: 'later', inMs: 5 }, aClosing(current))).state).toBe('FAILED')
    expect(await store.get(jobId)).toMatchObject({ error: 'postponed more than 1000 times', failedAttempts: 0 })
  })

  test('a released job is there again at once, and nothing is counted', async () => {
    const { node, store, jobId, hold } = await started()
    expect((await store.release(hold)).state).toBe('SCHEDULED')
    expect((await store.release(hold)).state).toBe('SCHEDULED')
    const again = await claimOne(node)
    expect(again.hold).toEqual({ jobId, queue: 'default', attempt: 2 })
    expect(again.job).toMatchObject({ failedAttempts: 0, lostAttempts: 0 })
    await expect(store.release(hold)).rejects.toMatchObject({ code: 'CLAIM_LOST' })
  })

  test('a result that is too large fails the job and says so; a long error keeps its beginning', async () => {
    const large = await started()
    const outcome = { kind: 'done', result: 'x'.repeat(256 * 1024) } as const
    expect((await large.store.settle(large.hold, outcome, aClosing(large.hold))).state).toBe('FAILED')
    expect((await large.store.get(large.jobId)).error).toBe(
      'the result takes 262146 bytes, more than the 262144 allowed',
    )
    const long = await started()
    await long.store.settle(long.hold, { kind: 'giveUp', error: 'é'.repeat(10_000) }, aClosing(long.hold))
    const error = (await long.store.get(long.jobId)).error ?? ''
    expect(Buffer.byteLength(error)).toBeLessThanOrEqual(8 * 1024)
    expect(error).toMatch(/^éé.*\(20000 bytes in all\)$/)
  })

  test('output, end and job are one step: a settle that is refused leaves no log', async () => {
    const { harness, store, jobId, hold } = await started()
    await store.settle(hold, { kind: 'done' }, aClosing(hold, 'exit 0', ['a', 'b']))
    const log = await harness.truth.query('job_events', { partition: `${jobId}#1`, limit: 10 })
    expect(log.entries.map((row) => String(row['event_payload']))).toEqual(['a', 'b', 'exit 0'])
    const late = store.settle(hold, { kind: 'done' }, aClosing(hold, 'exit 9', ['x', 'y', 'z']))
    await expect(late).rejects.toMatchObject({ code: 'CLAIM_LOST' })
    const after = await harness.truth.query('job_events', { partition: `${jobId}#1`, limit: 10 })
    expect(after.entries).toEqual(log.entries)
  })

  test('a job that waits is cancelled at once and never runs', async () => {
    const harness = createHarness({ queue: kind })
    const node = harness.node('a')
    const { jobId } = await node.store.enqueue(aRequest())
    expect(await node.store.cancel(jobId)).toEqual({ state: 'CANCELLED', requested: false })
    expect(await node.store.cancel(jobId)).toEqual({ state: 'CANCELLED', requested: false })
    expect(await claimNone(node)).toBe(true)
    await harness.clock.advance(day)
    await node.store.sweep.run()
    expect(await claimNone(node)).toBe(true)
  })

  test('a running job is asked to stop: its heartbeat says so, and whatever would return it ends it instead', async () => {
    const outcomes = [{ kind: 'failed', error: 'e' }, { kind: 'later', inMs: 1 }, { kind: 'cancelled' }] as const
    for (const outcome of outcomes) {
      const retry = { maxAttempts: 5, backoffBaseMs: 0, backoffCapMs: 0 }
      const { node, store, jobId, hold } = await started({ jobs: { retry } })
      expect(await store.cancel(jobId)).toEqual({ state: 'RUNNING', requested: true })
      expect(await store.cancel(jobId)).toEqual({ state: 'RUNNING', requested: true })
      expect((await store.renew(hold)).cancelRequested).toBe(true)
      expect((await store.settle(hold, outcome, aClosing(hold))).state).toBe('CANCELLED')
      expect(await claimNone(node)).toBe(true)
    }
    const released = await started()
    await released.store.cancel(released.jobId)
    expect((await released.store.release(released.hold)).state).toBe('CANCELLED')
    const finished = await started()
    await finished.store.cancel(finished.jobId)
    expect((await finished.store.settle(finished.hold, { kind: 'done' }, aClosing(finished.hold))).state).toBe(
      'COMPLETED',
    )
  })

  test('JOB-10 a cancelled job whose worker dies is CANCELLED by the sweeper, not run again', async () => {
    const { harness, node, store, jobId } = await started()
    await store.cancel(jobId)
    for (let sweeps = 0; sweeps < 15; sweeps++) {
      await harness.clock.advance(10_000)
      await store.sweep.run()
    }
    expect((await store.get(jobId)).state).toBe('CANCELLED')
    expect(await claimNone(node)).toBe(true)
  })

  test('a cancel between the sweeper’s look and its write still ends the job', async () => {
    for (let round = 0; round < 20; round++) {
      const harness = createHarness({ queue: kind, seed: round })
      const [sweeping, other] = [harness.node('sweeping', { slow: 0.5, slowMs: 10 }), harness.node('other')]
      const { jobId } = await other.store.enqueue(aRequest())
      await claimOne(other)
      for (let sweeps = 0; sweeps < 13; sweeps++) {
        await harness.clock.advance(10_000)
        const swept = sweeping.store.sweep.run()
        if (sweeps === 12) await other.store.cancel(jobId)
        await harness.run(swept)
      }
      await harness.run(sweeping.store.sweep.run())
      expect((await other.store.get(jobId)).state).toBe('CANCELLED')
    }
  })

  test('an ended job is redriven once per run; attempts go on and counts start afresh', async () => {
    const params = { kind: 'handler', name: 'h', input: 'x'.repeat(5_000) } as const
    const harness = createHarness({ queue: kind })
    const node = harness.node('a')
    const { jobId } = await node.store.enqueue(aRequest({ params }))
    const first = await claimOne(node)
    await node.store.settle(first.hold, { kind: 'failed', error: 'e'.repeat(3_000) }, aClosing(first.hold))
    expect((await node.store.get(jobId)).error).toBe('e'.repeat(3_000))
    const people = await Promise.all(
      [node.store.redrive(jobId, 1), harness.node('b').store.redrive(jobId, 1)].map((redrive) =>
        redrive.catch((fault: { code: string }) => fault.code),
      ),
    )
    expect(people).toContainEqual({ run: 2 })
    const second = await claimOne(node)
    expect(second.job).toMatchObject({ attempt: 2, run: 2, failedAttempts: 0, error: undefined, params })
    expect(await claimNone(node)).toBe(true)
    await harness.clock.advance(40 * day)
    expect((await node.store.get(jobId)).params).toEqual(params)
    await expect(node.store.redrive(jobId, 2)).rejects.toMatchObject({ code: 'JOB_NOT_READY' })
    await node.store.settle(second.hold, { kind: 'done' }, aClosing(second.hold))
    await expect(node.store.redrive(jobId, 2)).rejects.toMatchObject({ code: 'JOB_NOT_READY' })
    await expect(node.store.redrive('01890a5d-ac96-774b-bcce-b302099a8057', 1)).rejects.toMatchObject({
      code: 'JOB_UNKNOWN',
    })
  })

  test('an ended job is forgotten when its retention has passed, with everything that belongs to it', async () => {
    const params = { kind: 'handler', name: 'h', input: 'x'.repeat(5_000) } as const
    const harness = createHarness({ queue: kind, jobs: { retentionMs: 30 * day } })
    const node = harness.node('a')
    const { jobId } = await node.store.enqueue(aRequest({ params, requestId: 'r1' }))
    const { hold } = await claimOne(node)
    await node.store.settle(hold, { kind: 'done', result: 'y'.repeat(5_000) }, aClosing(hold))
    await harness.clock.advance(30 * day - 1_000)
    expect((await node.store.get(jobId)).state).toBe('COMPLETED')
    await harness.clock.advance(2_000)
    await expect(node.store.get(jobId)).rejects.toMatchObject({ code: 'JOB_UNKNOWN' })
    expect(await harness.truth.purge(harness.clock.now() / 1000, 100)).toBe(5)
    expect(await harness.truth.getMany(jobsTable.name, [[jobId], [`params#${jobId}`], [`result#${jobId}#1`]])).toEqual([
      undefined,
      undefined,
      undefined,
    ])
  })

  test('a request id never outlives its job', async () => {
    const harness = createHarness({ queue: kind, jobs: { retentionMs: 60_000, requestRetentionMs: 14 * day } })
    const node = harness.node('a')
    const { jobId } = await node.store.enqueue(aRequest({ requestId: 'r1', delayMs: 20 * day }))
    await node.store.cancel(jobId)
    await harness.clock.advance(33 * day)
    expect(await node.store.enqueue(aRequest({ requestId: 'r1', delayMs: 20 * day }))).toMatchObject({
      jobId,
      created: false,
      state: 'CANCELLED',
    })
  })
})
