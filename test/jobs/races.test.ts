import { describe, expect, test } from 'vitest'
import { expire } from '../../src/jobs/expire.ts'
import { settle } from '../../src/jobs/settle.ts'
import type { Row } from '../../src/tables/port.ts'
import { aClosing, aRequest, claimNone, claimOne, createHarness } from '../support/harness.ts'

// What comes between a look and a write. Each of these conditions was once taken out to see whether a test would notice.

const retry = { maxAttempts: 5, backoffBaseMs: 0, backoffCapMs: 0 }

describe.each(['memory', 'embedded'] as const)('races over the %s queue', (kind) => {
  const running = async () => {
    const harness = createHarness({ queue: kind, jobs: { retry } })
    const node = harness.node('a')
    const { jobId } = await node.store.enqueue(aRequest())
    const { hold } = await claimOne(node)
    const seen = (await harness.row(jobId)) as Row
    return { harness, node, jobId, hold, seen }
  }

  test('JOB-5 a hint of an earlier attempt does not claim a job that waits again', async () => {
    const { harness, node, jobId, hold } = await running()
    await node.store.settle(hold, { kind: 'failed', error: 'e' }, aClosing(hold))
    await harness.queue.finish(await harness.queue.receive('default', { max: 10, waitMs: 0 }))
    const stale = { jobId, queue: 'default', priority: 'normal', attempt: 0 } as const
    await harness.queue.send([{ message: stale, notBefore: 0 }])
    expect(await claimNone(node)).toBe(true)
    expect(await harness.row(jobId)).toMatchObject({ state: 'SCHEDULED', attempt: 1 })
  })

  test('C09 a heartbeat between the sweeper’s look and its write keeps the job with its worker', async () => {
    const { harness, node, jobId, hold, seen } = await running()
    await node.store.renew(hold)
    expect(await expire(node.context, seen)).toBe(false)
    expect(await harness.row(jobId)).toMatchObject({ state: 'RUNNING', attempt: 1, renewals: 1 })
  })

  test('JOB-10 a cancel between the sweeper’s look and its write ends the job', async () => {
    const { harness, node, jobId, seen } = await running()
    await node.store.cancel(jobId)
    expect(await expire(node.context, seen)).toBe(true)
    expect(await harness.row(jobId)).toMatchObject({ state: 'CANCELLED' })
  })

  test.each([
    { kind: 'failed', error: 'e' },
    { kind: 'later', inMs: 5 },
  ] as const)('JOB-10 a cancel between the look and the write of a settle ($kind) ends the job', async (outcome) => {
    const { harness, node, jobId, hold } = await running()
    let cancelled = false
    const tables: typeof node.context.tables = {
      ...node.context.tables,
      get: async (table, key) => {
        const row = await harness.truth.get(table, key)
        if (!cancelled) await harness.node('b').store.cancel(jobId)
        cancelled = true
        return row
      },
    }
    const settled = await settle({ ...node.context, tables }, hold, outcome, aClosing(hold))
    expect(settled.state).toBe('CANCELLED')
    expect(await claimNone(node)).toBe(true)
  })
})
