import { describe, expect, test } from 'vitest'
import type { Enqueued, EnqueueRequest, Json } from '../../src/jobs/job.ts'
import { jobsTable } from '../../src/jobs/keys.ts'
import { createSweeper } from '../../src/jobs/sweeper.ts'
import { isFault } from '../../src/kernel/fault.ts'
import { createSeededRandom } from '../../src/sim/seeded-random.ts'
import { aClosing, aRequest, claimNone, claimOne, createHarness } from '../support/harness.ts'

const day = 24 * 60 * 60_000

/** All rows of the jobs table whose key is a job's. */
const jobCount = async (harness: ReturnType<typeof createHarness>): Promise<number> => {
  let count = 0
  for (const queue of ['default', 'other']) {
    for (let shard = 0; shard < 8; shard++) {
      const page = await harness.truth.lookup(jobsTable.name, 'listing', {
        partition: `${queue}#${shard}`,
        limit: 1_000,
      })
      count += page.entries.length
    }
  }
  return count
}

describe('enqueue', () => {
  test('A01 the same request id twice gives the same job and time', async () => {
    const harness = createHarness()
    const { store } = harness.node('a')
    const first = await store.enqueue(aRequest({ requestId: 'r1' }))
    await harness.clock.advance(5_000)
    const second = await store.enqueue(aRequest({ requestId: 'r1' }))
    expect(second).toEqual({ ...first, created: false })
    expect(await jobCount(harness)).toBe(1)
  })

  test('A02 1,000 rounds of 50 callers with one request id on three nodes give one job each', async () => {
    const harness = createHarness()
    const nodes = ['a', 'b', 'c'].map((name) => harness.node(name))
    for (let round = 0; round < 1_000; round++) {
      const request = aRequest({ requestId: `r${round}` })
      const answers = await Promise.all(
        Array.from({ length: 50 }, (_, caller) => (nodes[caller % 3] as (typeof nodes)[number]).store.enqueue(request)),
      )
      expect(new Set(answers.map((answer) => answer.jobId)).size).toBe(1)
      expect(answers.filter((answer) => answer.created)).toHaveLength(1)
    }
    const { entries } = await harness.truth.lookup(jobsTable.name, 'listing', { partition: 'default#0', limit: 10_000 })
    expect(entries.length).toBeGreaterThan(0)
    let jobs = 0
    for (let shard = 0; shard < 8; shard++) {
      jobs += (await harness.truth.lookup(jobsTable.name, 'listing', { partition: `default#${shard}`, limit: 10_000 }))
        .entries.length
    }
    expect(jobs).toBe(1_000)
  })

  test('A03 the same request id with another body is refused, names the first job and changes nothing', async () => {
    const harness = createHarness()
    const { store } = harness.node('a')
    const { jobId } = await store.enqueue(aRequest({ requestId: 'r1' }))
    const other = aRequest({ requestId: 'r1', params: { kind: 'command', argv: ['false'] } })
    await expect(store.enqueue(other)).rejects.toMatchObject({ code: 'REQUEST_REUSED', jobId, field: 'requestId' })
    expect(await jobCount(harness)).toBe(1)
    expect((await store.get(jobId)).params).toEqual({ kind: 'command', argv: ['true'] })
  })

  test('A03 members in another order are the same body', async () => {
    const { store } = createHarness().node('a')
    const input = (value: Json): EnqueueRequest =>
      aRequest({ requestId: 'r1', params: { kind: 'handler', name: 'h', input: value } })
    const first = await store.enqueue(input({ a: 1, b: [{ c: 2, d: 3 }] }))
    expect(await store.enqueue(input({ b: [{ d: 3, c: 2 }], a: 1 }))).toEqual({ ...first, created: false })
  })

  test('A04 after the request id is forgotten the same request makes a new job, with no error in between', async () => {
    const harness = createHarness({ jobs: { requestRetentionMs: 14 * day } })
    const { store } = harness.node('a')
    const first = await store.enqueue(aRequest({ requestId: 'r1' }))
    const ids = new Set<string>([first.jobId])
    for (let hour = 0; hour < 15 * 24; hour += 6) {
      await harness.clock.advance(6 * 60 * 60_000)
      const { jobId } = await store.enqueue(aRequest({ requestId: 'r1' }))
      ids.add(jobId)
      const age = harness.clock.now() - first.createdAt
      expect(ids.size).toBe(age < 14 * day ? 1 : 2)
    }
  })

  test('A05 a crash between the job and its message: the sweeper of another process sends it within the bound', async () => {
    const harness = createHarness({
      // The process dies while it sends for the first time: the call never comes back and nothing was sent.
      wrapQueue: (queue) => {
        let first = true
        return {
          ...queue,
          send: (outgoing) => {
            if (!first) return queue.send(outgoing)
            first = false
            return new Promise(() => {})
          },
        }
      },
    })
    void harness.node('dying').store.enqueue(aRequest({ requestId: 'r1' }))
    await harness.clock.advance(0)
    const alive = harness.node('alive')
    expect(await jobCount(harness)).toBe(1)
    expect(await claimNone(alive)).toBe(true)
    const sweeper = createSweeper(
      { clock: harness.clock, random: createSeededRandom(7), emit: () => {}, sweep: alive.store.sweep },
      { sweepIntervalMs: 10_000 },
    )
    await harness.clock.advance(30_000 + 2 * 10_000)
    expect((await claimOne(alive)).job.requestId).toBe('r1')
    await sweeper.stop()
    expect(harness.clock.timers).toBe(0)
  })

  test('A06 a caller whose answer was lost asks again and gets the same job', async () => {
    const harness = createHarness()
    const a = harness.node('a')
    a.tables.inject('lostReply')
    const first = await harness.run(a.store.enqueue(aRequest({ requestId: 'r1' })))
    expect(first.created).toBe(true)
    const again = await harness.node('b').store.enqueue(aRequest({ requestId: 'r1' }))
    expect(again.jobId).toBe(first.jobId)
    expect(await jobCount(harness)).toBe(1)
    expect((await claimOne(harness.node('w'))).job.id).toBe(first.jobId)
  })

  test.each(['lostReply', 'lostRequest'] as const)(
    'A07 an unknown outcome (%s) never makes a second job',
    async (kind) => {
      for (const requestId of ['r1', undefined]) {
        const harness = createHarness()
        const { store, tables } = harness.node('a')
        tables.inject(kind)
        tables.inject(kind)
        const request = requestId === undefined ? aRequest() : aRequest({ requestId })
        const answer = await harness.run(store.enqueue(request))
        expect(answer.created).toBe(true)
        expect(await jobCount(harness)).toBe(1)
        expect(tables.fired[kind]).toBe(2)
      }
    },
  )

  test('A08 while the store is throttled the caller is told when to come back, and nothing is half there', async () => {
    const harness = createHarness()
    const { store, tables } = harness.node('a', { throttled: 1 })
    const answer = await harness.run(store.enqueue(aRequest({ requestId: 'r1' })).catch((fault: unknown) => fault))
    expect(answer).toMatchObject({ code: 'STORE_BUSY', retry: 'later', retryAfterMs: 1_000 })
    expect(await jobCount(harness)).toBe(0)
    tables.heal()
    expect((await store.enqueue(aRequest({ requestId: 'r1' }))).created).toBe(true)
  })

  test('A09 a storm of conflicts ends in a clear error', async () => {
    const harness = createHarness()
    const { store } = harness.node('a', { conflict: 1 })
    const answer = await harness.run(store.enqueue(aRequest()).catch((fault: unknown) => fault))
    expect(answer).toMatchObject({ code: 'STORE_BUSY' })
  })

  test('A10 a queue that is not configured is refused, and nothing is stored', async () => {
    const harness = createHarness()
    const { store } = harness.node('a')
    await expect(store.enqueue(aRequest({ queue: 'nowhere' }))).rejects.toMatchObject({ code: 'QUEUE_UNKNOWN' })
    expect(await jobCount(harness)).toBe(0)
  })

  test.each(['', ' ', 'a b', 'a|b', 'a#b', 'ä', '\u0000', 'x'.repeat(129), '../..', '-a'])(
    'A11 the request id %j is refused with the name of the field',
    async (requestId) => {
      const { store } = createHarness().node('a')
      await expect(store.enqueue(aRequest({ requestId }))).rejects.toMatchObject({
        code: 'INPUT_INVALID',
        field: 'requestId',
      })
    },
  )

  test('A11 odd queue names and job ids are refused with the name of the field', async () => {
    const { store } = createHarness().node('a')
    for (const queue of ['', '|', 'DEFAULT', '\n', 'x'.repeat(100_000), '__proto__', 'constructor']) {
      await expect(store.enqueue(aRequest({ queue }))).rejects.toMatchObject({ code: 'QUEUE_UNKNOWN', field: 'queue' })
    }
    for (const jobId of ['', 'request#default#r1', '../x', 'A'.repeat(36)]) {
      await expect(store.enqueue(aRequest({ jobId }))).rejects.toMatchObject({ field: 'jobId' })
      await expect(store.get(jobId)).rejects.toMatchObject({ field: 'jobId' })
      await expect(store.cancel(jobId)).rejects.toMatchObject({ field: 'jobId' })
    }
  })

  const deep = () => {
    let value: Json = 1
    for (let depth = 0; depth < 10_000; depth++) value = [value]
    return value
  }
  test.each([
    ['more than 256 KiB', () => 'x'.repeat(300_000), 256 * 1024],
    ['a depth of 10,000', deep, 64],
    ['a million names', () => Object.fromEntries(Array.from({ length: 1_000_000 }, (_, n) => [`k${n}`, 0])), 50_000],
    ['a million elements', () => new Array(1_000_000).fill(0) as Json, 50_000],
    ['NaN', () => Number.NaN, undefined],
    ['infinity', () => ({ a: [Number.POSITIVE_INFINITY] }), undefined],
    ['a bigint', () => 1n as unknown as Json, undefined],
    ['a function', () => (() => {}) as unknown as Json, undefined],
    ['a date', () => new Date(0) as unknown as Json, undefined],
    ['__proto__', () => JSON.parse('{"a":{"__proto__":{"polluted":true}}}') as Json, undefined],
  ])('A12 params with %s are refused with the limit, and no prototype is touched', async (_, make, limit) => {
    const harness = createHarness()
    const { store } = harness.node('a')
    const request = aRequest({ params: { kind: 'handler', name: 'h', input: make() } })
    const fault: unknown = await store.enqueue(request).catch((error: unknown) => error)
    expect(fault).toMatchObject({ code: 'INPUT_INVALID', field: 'params', limit })
    expect(({} as Record<string, unknown>)['polluted']).toBeUndefined()
    expect(await jobCount(harness)).toBe(0)
  })

  test('A12 params of any size up to the limit come back as they were given', async () => {
    const harness = createHarness()
    const { store } = harness.node('a')
    for (const size of [0, 900, 1_100, 250_000]) {
      const params = { kind: 'handler', name: 'h', input: { text: 'ü'.repeat(size / 2), constructor: 1 } } as const
      const { jobId } = await store.enqueue(aRequest({ params }))
      expect((await store.get(jobId)).params).toEqual(params)
      expect((await claimOne({ store })).job.params).toEqual(params)
    }
  })

  test.each([
    ['no arguments', { kind: 'command', argv: [] }, 'params.argv'],
    ['a NUL', { kind: 'command', argv: ['a\0b'] }, 'params'],
    ['a number', { kind: 'command', argv: [1] }, 'params'],
    ['a name with =', { kind: 'command', argv: ['a'], env: { 'A=B': '' } }, 'params.env'],
    ['another kind', { kind: 'shell', line: 'rm' }, 'params.kind'],
    ['nothing', undefined, 'params.kind'],
    ['no handler', { kind: 'handler', name: '', input: null }, 'params.name'],
  ])('A12 a command with %s is refused', async (_, params, field) => {
    const { store } = createHarness().node('a')
    await expect(store.enqueue(aRequest({ params: params as never }))).rejects.toMatchObject({
      code: 'INPUT_INVALID',
      field,
    })
  })

  test('A13 a delay of hours is kept, the past is now, and what is out of range is refused', async () => {
    const harness = createHarness()
    const { store } = harness.node('a')
    const now = harness.clock.now()
    const late = await store.enqueue(aRequest({ delayMs: 40 * 60_000 }))
    expect((await store.get(late.jobId)).notBefore).toBe(now + 40 * 60_000)
    const past = await store.enqueue(aRequest({ notBefore: 1 }))
    expect((await store.get(past.jobId)).notBefore).toBe(now)
    const year9999 = 253_370_764_800_000
    for (const wrong of [{ delayMs: -1 }, { delayMs: 1.5 }, { delayMs: Number.NaN }, { delayMs: 400 * day }]) {
      await expect(store.enqueue(aRequest(wrong))).rejects.toMatchObject({ code: 'INPUT_INVALID', field: 'delayMs' })
    }
    await expect(store.enqueue(aRequest({ notBefore: year9999 }))).rejects.toMatchObject({ field: 'notBefore' })
    await expect(store.enqueue(aRequest({ notBefore: now, delayMs: 1 }))).rejects.toMatchObject({ field: 'delayMs' })
  })

  test('A14 the time of creation is the server’s', async () => {
    const harness = createHarness()
    const { store } = harness.node('a')
    const { createdAt } = await store.enqueue({ ...aRequest(), createdAt: 5 } as EnqueueRequest)
    expect(createdAt).toBe(harness.clock.now())
  })

  test('bulk answers for each job: equal ids are joined, duplicates and bad ones do not hold up the rest', async () => {
    const harness = createHarness()
    const { store } = harness.node('a')
    const known = await store.enqueue(aRequest({ requestId: 'known' }))
    const answers = await store.enqueueMany([
      aRequest({ requestId: 'r1' }),
      aRequest({ requestId: 'r1' }),
      aRequest({ requestId: 'known' }),
      aRequest({ queue: 'nowhere' }),
      aRequest({ requestId: 'r1', params: { kind: 'command', argv: ['other'] } }),
      aRequest(),
      aRequest({ requestId: 'r1', queue: 'other' }),
    ])
    const made = answers.map((answer) => (isFault(answer) ? answer.code : (answer as Enqueued).created))
    expect(made).toEqual([true, false, false, 'QUEUE_UNKNOWN', 'REQUEST_REUSED', true, true])
    expect((answers[1] as Enqueued).jobId).toBe((answers[0] as Enqueued).jobId)
    expect((answers[2] as Enqueued).jobId).toBe(known.jobId)
    expect(await jobCount(harness)).toBe(4)
    await expect(store.enqueueMany(new Array(1_001).fill(aRequest()))).rejects.toMatchObject({ limit: 1_000 })
  })

  test('a job id given by the caller makes the job once', async () => {
    const harness = createHarness()
    const { store } = harness.node('a')
    const jobId = '01890a5d-ac96-774b-bcce-b302099a8057'
    expect((await store.enqueue(aRequest({ jobId }))).created).toBe(true)
    await harness.clock.advance(1_000)
    expect(await store.enqueue(aRequest({ jobId }))).toMatchObject({ jobId, created: false })
    expect(await jobCount(harness)).toBe(1)
  })

  test('execution and retry settings are the server’s with what the job asks for, and are kept with the job', async () => {
    const harness = createHarness({ jobs: { retry: { maxAttempts: 2, backoffBaseMs: 10, backoffCapMs: 100 } } })
    const { store } = harness.node('a')
    const { jobId } = await store.enqueue(
      aRequest({ execution: { leaseMs: 30_000, heartbeatMs: 5_000 }, retry: { maxAttempts: 7 }, timeoutMs: 9 }),
    )
    const job = await store.get(jobId)
    expect(job.execution).toMatchObject({
      leaseMs: 30_000,
      heartbeatMs: 5_000,
      maxBatchSize: 50,
      batchSizeBound: 2_000,
    })
    expect(job.retry).toEqual({ maxAttempts: 7, backoffBaseMs: 10, backoffCapMs: 100 })
    expect(job.timeoutMs).toBe(9)
    await expect(store.enqueue(aRequest({ execution: { leaseMs: 5_000 } }))).rejects.toMatchObject({
      field: 'execution.heartbeatMs',
    })
    await expect(store.enqueue(aRequest({ execution: { nope: 1 } as never }))).rejects.toMatchObject({
      code: 'INPUT_INVALID',
    })
    await expect(store.enqueue(aRequest({ retry: { maxAttempts: 0 } }))).rejects.toMatchObject({
      field: 'retry.maxAttempts',
    })
  })

  test('a job row stays small whatever the job carries', async () => {
    const harness = createHarness()
    const { store } = harness.node('a')
    const params = { kind: 'handler', name: 'h', input: 'x'.repeat(200_000) } as const
    const { jobId } = await store.enqueue(aRequest({ params, requestId: 'r'.repeat(128) }))
    const { hold } = await claimOne({ store })
    await store.settle(hold, { kind: 'done', result: 'y'.repeat(200_000) }, aClosing(hold))
    expect(JSON.stringify(await harness.row(jobId)).length).toBeLessThan(2_048)
    expect((await store.get(jobId)).result).toBe('y'.repeat(200_000))
  })
})
