import { describe, expect, test } from 'vitest'
import { aClosing, aRequest, claimNone, claimOne, createHarness } from '../support/harness.ts'

describe.each(['memory', 'embedded'] as const)('taking one job over the %s queue', (kind) => {
  test('takes that job and no other, whatever waits before it, and its message is never run again', async () => {
    const harness = createHarness({ queue: kind })
    const node = harness.node('a')
    const older = await node.store.enqueue(aRequest())
    const { jobId } = await node.store.enqueue(aRequest())
    const claim = await node.store.claimJob(jobId, 'me')
    expect(claim).toMatchObject({ hold: { jobId, attempt: 1 }, job: { state: 'RUNNING', workerId: 'me' } })
    const other = await claimOne(node)
    expect(other.hold.jobId).toBe(older.jobId)
    expect(await claimNone(node)).toBe(true)
  })

  test('of two who want one job, one gets it', async () => {
    const harness = createHarness({ queue: kind })
    const [a, b] = [harness.node('a'), harness.node('b')]
    const { jobId } = await a.store.enqueue(aRequest())
    const answers = await Promise.all([a.store.claimJob(jobId, 'a'), b.store.claimJob(jobId, 'b')])
    expect(answers.filter((answer) => 'hold' in answer)).toHaveLength(1)
    expect(answers.filter((answer) => !('hold' in answer))).toEqual([{ state: 'RUNNING', notBefore: undefined }])
  })

  test('C05 a claim whose answer was lost is recognised', async () => {
    const harness = createHarness({ queue: kind })
    const node = harness.node('a')
    const { jobId } = await node.store.enqueue(aRequest())
    node.tables.inject('lostReply')
    const claim = await harness.run(node.store.claimJob(jobId, 'me'))
    expect(claim).toMatchObject({ hold: { jobId, attempt: 1 } })
  })

  test('JOB-9 not before its time, and it says when that is', async () => {
    const harness = createHarness({ queue: kind })
    const node = harness.node('a')
    const { jobId } = await node.store.enqueue(aRequest({ delayMs: 5_000 }))
    const notBefore = harness.clock.now() + 5_000
    expect(await node.store.claimJob(jobId, 'me')).toEqual({ state: 'SCHEDULED', notBefore })
    await harness.clock.advance(5_000)
    expect(await node.store.claimJob(jobId, 'me')).toMatchObject({ hold: { attempt: 1 } })
  })

  test('not after its end, nor one that was never there', async () => {
    const harness = createHarness({ queue: kind })
    const node = harness.node('a')
    const { jobId } = await node.store.enqueue(aRequest())
    const { hold } = await claimOne(node)
    await node.store.settle(hold, { kind: 'done' }, aClosing(hold))
    expect(await node.store.claimJob(jobId, 'me')).toEqual({ state: 'COMPLETED', notBefore: undefined })
    const nobody = jobId.replace(/.$/, (digit) => (digit === '0' ? '1' : '0'))
    await expect(node.store.claimJob(nobody, 'me')).rejects.toMatchObject({ code: 'JOB_UNKNOWN' })
  })
})
