import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Claim, createRuntime, type EnqueueRequest, type Runtime } from '../../src/index.ts'
import { type Clock, systemClock } from '../../src/kernel/clock.ts'
import { aClosing, aRequest } from '../support/harness.ts'

/** Real time that a test can move ahead: leases and delays pass without anybody waiting for them. */
export const createShiftedClock = (): Clock & { shift(ms: number): void } => {
  let ahead = 0
  return {
    ...systemClock,
    now: () => systemClock.now() + ahead,
    monotonic: () => systemClock.monotonic() + ahead,
    shift: (ms) => {
      ahead += ms
    },
  }
}

export interface StoreFixture {
  /** What a process would be started with. */
  readonly options: object
  /** How many processes may share the storage. */
  readonly processes: 1 | 2
  readonly end: () => Promise<void>
}

const lease = 60_000
const waitMs = 10_000

/** The life of jobs on a real profile: the same story wherever they are stored. */
export const storeContract = (name: string, open: () => Promise<StoreFixture>): void => {
  describe(`the store on ${name}`, () => {
    const clock = createShiftedClock()
    let fixture: StoreFixture
    let a: Runtime
    let b: Runtime
    beforeAll(async () => {
      fixture = await open()
      const options = { jobs: { queues: ['default', 'other', 'slow'] }, ...fixture.options }
      a = await createRuntime(options, { clock, work: 'none' })
      b = fixture.processes === 2 ? await createRuntime(options, { clock, work: 'none' }) : a
    })
    afterAll(async () => {
      await a.stop()
      await b.stop()
      await fixture.end()
    })

    const take = async (runtime: Runtime, queue = 'default'): Promise<Claim> => {
      const [claim] = await runtime.store.claim({ queue, workerId: `${runtime.workerPrefix}1`, max: 1, waitMs })
      if (!claim) throw new Error('no job came')
      return claim
    }
    const request = (rest: Partial<EnqueueRequest> = {}) => aRequest({ retry: { backoffBaseMs: 0 }, ...rest })

    test('A02 fifty callers with one request id in two processes make one job', async () => {
      const answers = await Promise.all(
        Array.from({ length: 50 }, (_, n) => (n % 2 ? a : b).store.enqueue(request({ requestId: 'r1' }))),
      )
      expect(new Set(answers.map(({ jobId }) => jobId)).size).toBe(1)
      expect(answers.filter(({ created }) => created)).toHaveLength(1)
      const { job, hold } = await take(a)
      expect(job.id).toBe(answers[0]?.jobId)
      expect((await b.store.renew(hold)).cancelRequested).toBe(false)
      expect(await b.store.settle(hold, { kind: 'done', result: [1, 'zwei'] }, aClosing(hold))).toMatchObject({
        state: 'COMPLETED',
      })
      expect(await a.store.get(job.id)).toMatchObject({ state: 'COMPLETED', result: [1, 'zwei'], attempt: 1 })
      expect(await b.store.settle(hold, { kind: 'done', result: [1, 'zwei'] }, aClosing(hold))).toMatchObject({
        state: 'COMPLETED',
      })
      const other = b.store.settle(hold, { kind: 'done' }, aClosing(hold, 'other'))
      await expect(other).rejects.toMatchObject({ code: 'CLAIM_LOST' })
    })

    test('large params and results are kept beside the row', async () => {
      const params = { kind: 'handler', name: 'h', input: 'ä'.repeat(100_000) } as const
      const { jobId } = await a.store.enqueue(request({ params }))
      const { job, hold } = await take(b)
      expect(job.params).toEqual(params)
      await b.store.settle(hold, { kind: 'done', result: 'ö'.repeat(100_000) }, aClosing(hold))
      expect((await a.store.get(jobId)).result).toBe('ö'.repeat(100_000))
    })

    test('a failed attempt comes again, and the last one fails the job; a person starts it anew', async () => {
      const { jobId } = await a.store.enqueue(request({ retry: { maxAttempts: 2, backoffBaseMs: 0 } }))
      for (const state of ['SCHEDULED', 'FAILED']) {
        const { hold } = await take(b)
        expect((await b.store.settle(hold, { kind: 'failed', error: 'e' }, aClosing(hold, 'exit 1'))).state).toBe(state)
      }
      expect(await b.store.redrive(jobId, 1)).toEqual({ run: 2 })
      const { hold } = await take(a)
      expect(hold).toEqual({ jobId, queue: 'default', attempt: 3 })
      await a.store.settle(hold, { kind: 'done' }, aClosing(hold))
    })

    test('C01 C11 a worker that is not heard from loses its job to another, and is refused from then on', async () => {
      const { jobId } = await a.store.enqueue(request({ queue: 'slow' }))
      const { hold } = await take(a, 'slow')
      await a.store.renew(hold)
      for (let looks = 0; looks < 4; looks++) {
        clock.shift(lease)
        await b.store.sweep.run()
      }
      const second = await take(b, 'slow')
      expect(second.hold).toEqual({ jobId, queue: 'slow', attempt: 2 })
      await expect(a.store.renew(hold)).rejects.toMatchObject({ code: 'CLAIM_LOST' })
      const late = a.store.settle(hold, { kind: 'done' }, aClosing(hold))
      await expect(late).rejects.toMatchObject({ code: 'CLAIM_LOST' })
      await b.store.settle(second.hold, { kind: 'done' }, aClosing(second.hold))
    })

    test('a job is cancelled while it waits, and asked to stop while it runs', async () => {
      const waiting = await a.store.enqueue(request({ queue: 'other', delayMs: 3_600_000 }))
      expect(await b.store.cancel(waiting.jobId)).toEqual({ state: 'CANCELLED', requested: false })
      const running = await a.store.enqueue(request({ queue: 'other' }))
      const { hold } = await take(a, 'other')
      expect(hold.jobId).toBe(running.jobId)
      expect(await b.store.cancel(running.jobId)).toEqual({ state: 'RUNNING', requested: true })
      expect((await a.store.renew(hold)).cancelRequested).toBe(true)
      expect((await a.store.settle(hold, { kind: 'cancelled' }, aClosing(hold))).state).toBe('CANCELLED')
    })

    test('every job is listed once, in pages', async () => {
      const seen: string[] = []
      let cursor: string | undefined
      do {
        const page = await b.store.list(cursor === undefined ? { limit: 2 } : { limit: 2, cursor })
        seen.push(...page.jobs.map(({ id }) => id))
        cursor = page.cursor
      } while (cursor !== undefined)
      expect(new Set(seen).size).toBe(seen.length)
      expect(seen).toHaveLength(6)
      expect((await a.store.list({ limit: 10, state: 'CANCELLED' })).jobs).toHaveLength(2)
    })

    test('a hundred jobs in bulk are each claimed once by the workers of both processes', async () => {
      const made = await a.store.enqueueMany(Array.from({ length: 100 }, () => request({ queue: 'other' })))
      expect(made).toHaveLength(100)
      const done = new Set<string>()
      const work = async (runtime: Runtime) => {
        while (done.size < 100) {
          const workerId = `${runtime.workerPrefix}2`
          const claims = await runtime.store.claim({ queue: 'other', workerId, max: 10, waitMs: 1_000 })
          for (const { hold } of claims) {
            expect(done.has(hold.jobId)).toBe(false)
            done.add(hold.jobId)
            await runtime.store.settle(hold, { kind: 'done' }, aClosing(hold))
          }
        }
      }
      await Promise.all([work(a), work(b)])
      expect(done.size).toBe(100)
    })

    test('C14 a token of one process is good in the other', async () => {
      const hold = { jobId: '01890a5d-ac96-774b-bcce-b302099a8057', queue: 'default', attempt: 1 }
      expect(b.tokens.verify(a.tokens.issue(hold, lease))).toEqual(hold)
    })
  })
}
