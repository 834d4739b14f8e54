import { describe, expect, test } from 'vitest'
import type { HandlerContext } from '../../src/worker/handlers.ts'
import { done, giveUp, later } from '../../src/worker/outcome.ts'
import { createWorld, run } from './support.ts'

const forEver = () => new Promise<never>(() => {})
const untilAborted = (signal: AbortSignal) =>
  new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }))

describe('a handler', () => {
  test.each([
    ['a plain value', () => ({ sum: 3 }), { sum: 3 }],
    ['a promise of one', async () => [1, 'two'], [1, 'two']],
    ['done with a result', () => done('good'), 'good'],
    ['done without one', async () => done(), undefined],
    ['nothing', () => {}, undefined],
    ['a value that looks like an outcome', () => ({ kind: 'giveUp', error: 'no' }), { kind: 'giveUp', error: 'no' }],
  ])('that returns %s completes its job', async (_, handler, result) => {
    const world = createWorld({ handlers: { work: handler } })
    const jobId = await world.submit(run('work'))
    world.worker.start()
    await world.breathe()
    expect(await world.job(jobId)).toMatchObject({ state: 'COMPLETED', result })
    expect(await world.entries(jobId)).toMatchObject([{ type: 4, data: {} }])
    await world.worker.stop()
  })

  test('is given its input and who it works for', async () => {
    const seen: unknown[] = []
    const handlers = {
      work: (ctx: HandlerContext, input: unknown) => void seen.push(ctx.jobId, ctx.attempt, ctx.input, input),
    }
    const world = createWorld({ handlers })
    const jobId = await world.submit(run('work', { a: 1 }))
    world.worker.start()
    await world.breathe()
    expect(seen).toEqual([jobId, 1, { a: 1 }, { a: 1 }])
    await world.worker.stop()
  })

  test('that answers at once costs one call to the store: no heartbeat, no log, no timer, nothing to listen to', async () => {
    const world = createWorld({ handlers: { sync: () => 1, async: async () => 2 }, worker: { slots: 10 } })
    for (const name of ['sync', 'async', 'sync', 'async']) await world.submit(run(name))
    const timers = world.clock.timers
    world.worker.start()
    await world.breathe()
    expect(world.calls).toMatchObject({ settle: 4, renew: 0, publish: 0, listen: 0 })
    expect(world.logs.count).toBe(0)
    // The long poll is the only thing that waits.
    expect(world.clock.timers).toBe(timers + 1)
    await world.worker.stop()
    expect(world.clock.timers).toBe(timers)
  })

  test('that throws has failed with the message, and the stack is in the log', async () => {
    const world = createWorld({
      handlers: {
        work: () => {
          throw new TypeError('no such thing')
        },
      },
    })
    const jobId = await world.submit(run('work'))
    world.worker.start()
    await world.breathe()
    expect(await world.job(jobId)).toMatchObject({ state: 'FAILED', error: 'no such thing' })
    const entries = await world.entries(jobId)
    expect(entries.map(({ type }) => type)).toEqual([3, 5, 4])
    expect(entries[0]?.data).toMatchObject({ handler: 'work', attempt: 1, workerId: world.worker.id })
    expect(entries[1]?.data['message']).toContain('handlers.test.ts')
    expect(entries[2]?.data).toEqual({ error: 'no such thing' })
    await world.worker.stop()
  })

  test.each([
    ['text', 'no text', 'no text'],
    ['a number', 7, 'threw 7'],
    ['nothing', undefined, 'threw undefined'],
    ['an error without a message', new RangeError(), 'RangeError'],
  ])('that throws %s has failed too', async (_, thrown, error) => {
    const world = createWorld({ handlers: { work: () => Promise.reject(thrown) } })
    const jobId = await world.submit(run('work'))
    world.worker.start()
    await world.breathe()
    expect(await world.job(jobId)).toMatchObject({ state: 'FAILED', error })
    await world.worker.stop()
  })

  test('that gives up is not tried again', async () => {
    const world = createWorld({ handlers: { work: () => giveUp('hopeless') } })
    const jobId = await world.submit(run('work'), { retry: { maxAttempts: 5 } })
    world.worker.start()
    await world.breathe()
    expect(await world.job(jobId)).toMatchObject({ state: 'FAILED', error: 'hopeless', attempt: 1 })
    await world.worker.stop()
  })

  test('that answers later is called again, not before its time', async () => {
    let calls = 0
    const world = createWorld({ handlers: { work: () => (++calls < 3 ? later(5_000) : 'at last') } })
    const jobId = await world.submit(run('work'))
    world.worker.start()
    await world.clock.advance(4_000)
    expect(calls).toBe(1)
    await world.clock.advance(8_000)
    expect(await world.job(jobId)).toMatchObject({
      state: 'COMPLETED',
      result: 'at last',
      attempt: 3,
      failedAttempts: 0,
    })
    await world.worker.stop()
  })

  test.each([
    ['a bigint', () => ({ n: 1n }) as never, /cannot be stored: .*bigint/],
    ['a function', () => (() => {}) as never, /cannot be stored: .*function/],
    ['a delay that is none', () => later(-1), /cannot be stored: inMs/],
  ])('that answers with %s has failed, with a text that says so', async (_, handler, error) => {
    const world = createWorld({ handlers: { work: handler } })
    const jobId = await world.submit(run('work'))
    world.worker.start()
    await world.breathe()
    expect(await world.job(jobId)).toMatchObject({ state: 'FAILED', error: expect.stringMatching(error) })
    await world.worker.stop()
  })

  test('whose name nobody knows is given up, and the known ones are named', async () => {
    const world = createWorld({ handlers: { mail: () => {}, print: () => {} } })
    const jobId = await world.submit(run('mial'), { retry: { maxAttempts: 5 } })
    world.worker.start()
    await world.breathe()
    const error = "there is no handler 'mial': this worker has 'mail', 'print'"
    expect(await world.job(jobId)).toMatchObject({ state: 'FAILED', error, attempt: 1 })
    await world.worker.stop()
  })

  test('writes lines and progress into the log, and only then there is one', async () => {
    const world = createWorld({
      handlers: {
        work: async (ctx) => {
          await ctx.log('one')
          ctx.progress(0.5, 'half')
          await ctx.log('two')
          return 'done'
        },
      },
    })
    const jobId = await world.submit(run('work'))
    world.worker.start()
    await world.breathe()
    expect(await world.entries(jobId)).toMatchObject([
      { type: 3, data: { handler: 'work' } },
      { type: 1, data: { stream: 'stdout', text: 'one\n' } },
      { type: 6, data: { fraction: 0.5, text: 'half' } },
      { type: 1, data: { text: 'two\n' } },
      { type: 4, data: {} },
    ])
    expect(await world.job(jobId)).toMatchObject({ state: 'COMPLETED', result: 'done' })
    await world.worker.stop()
  })

  test('that logs after it has answered changes nothing', async () => {
    let late: HandlerContext | undefined
    const world = createWorld({
      handlers: {
        work: (ctx) => {
          late = ctx
        },
      },
    })
    const jobId = await world.submit(run('work'))
    world.worker.start()
    await world.breathe()
    expect(late?.log('too late')).toBeUndefined()
    late?.progress(1)
    await world.breathe()
    expect(await world.entries(jobId)).toHaveLength(1)
    expect(world.logs.count).toBe(0)
    await world.worker.stop()
  })

  test('R0.22 that takes its time is kept alive by heartbeats at the pace of its job', async () => {
    let finish = (_: string) => {}
    const world = createWorld({
      handlers: {
        work: () =>
          new Promise<string>((resolve) => {
            finish = resolve
          }),
      },
    })
    const jobId = await world.submit(run('work'), { execution: { leaseMs: 30_000, heartbeatMs: 7_000 } })
    world.worker.start()
    await world.clock.advance(71_000)
    expect(world.calls.renew).toBe(10)
    finish('slow')
    await world.breathe()
    expect(await world.job(jobId)).toMatchObject({ state: 'COMPLETED', result: 'slow', attempt: 1 })
    await world.clock.advance(60_000)
    expect(world.calls.renew).toBe(10)
    await world.worker.stop()
  })

  test('that is cancelled sees its signal aborted, and the job is cancelled', async () => {
    let aborted = false
    const world = createWorld({
      handlers: {
        work: async (ctx) => {
          await untilAborted(ctx.signal)
          aborted = true
          return 'ignored'
        },
      },
    })
    const jobId = await world.submit(run('work'))
    world.worker.start()
    await world.breathe()
    await world.a.store.cancel(jobId)
    world.notices.tell(jobId, { cancelRequested: true })
    await world.breathe()
    expect(aborted).toBe(true)
    expect(await world.job(jobId)).toMatchObject({ state: 'CANCELLED' })
    await world.worker.stop()
  })

  test('that ignores its signal is not waited for: its time limit holds, and what it does later has no effect', async () => {
    let ctx: HandlerContext | undefined
    const world = createWorld({
      handlers: {
        work: (given) => {
          ctx = given
          return forEver()
        },
      },
      worker: { slots: 1 },
    })
    const jobId = await world.submit(run('work'), { timeoutMs: 3_000, execution: { graceMs: 2_000 } })
    world.worker.start()
    await world.clock.advance(4_000)
    expect(ctx?.signal.aborted).toBe(true)
    expect(await world.job(jobId)).toMatchObject({ state: 'RUNNING' })
    await world.clock.advance(1_100)
    expect(await world.job(jobId)).toMatchObject({ state: 'FAILED', error: 'took longer than 3000 ms' })
    expect(world.warnings()).toEqual([expect.stringContaining("handler 'work' of job")])
    expect(ctx?.log('too late')).toBeUndefined()
    expect(world.worker.busy()).toBe(0)
    await world.worker.stop()
  })

  test('C03 that blocks the process for more than a third of a lease is warned about, and so is a block that only timers notice', async () => {
    let skew = 0
    const handlers = {
      blocks: () => {
        skew += 25_000
      },
      waits: forEver,
    }
    const world = createWorld({
      handlers,
      clock: (clock) => ({ ...clock, monotonic: () => clock.monotonic() + skew }),
      worker: { slots: 3 },
    })
    await world.submit(run('blocks'))
    world.worker.start()
    await world.breathe()
    expect(world.warnings()).toEqual([
      expect.stringMatching(
        /^handler 'blocks' of job .* blocked this process for 25000 ms, more than a third of a lease/,
      ),
    ])
    await world.submit(run('waits'))
    await world.submit(run('waits'))
    await world.breathe()
    skew += 30_000
    await world.clock.advance(20_000)
    // Two attempts noticed, and it is said once.
    expect(world.warnings()).toHaveLength(2)
    expect(world.warnings()[1]).toMatch(/^something blocked this process for 30\d\d\d ms/)
    skew += 1
    await world.clock.advance(60_000)
    expect(world.warnings()).toHaveLength(2)
    await world.worker.stopNow()
  })

  test('C03 one that blocks less is not', async () => {
    let skew = 0
    const world = createWorld({
      handlers: {
        blocks: () => {
          skew += 19_000
        },
      },
      clock: (clock) => ({ ...clock, monotonic: () => clock.monotonic() + skew }),
    })
    await world.submit(run('blocks'))
    world.worker.start()
    await world.breathe()
    expect(world.warnings()).toEqual([])
    await world.worker.stop()
  })
})
