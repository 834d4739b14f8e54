import { describe, expect, test } from 'vitest'
import { QueueUnknown, StoreBusy } from '../../src/jobs/faults.ts'
import { sleep } from '../../src/kernel/clock.ts'
import { createSeededRandom } from '../../src/sim/seeded-random.ts'
import type { HandlerContext } from '../../src/worker/handlers.ts'
import { obedient, stubborn } from './sim-exec.ts'
import { createWorld, run, type World } from './support.ts'

describe('a worker that stops', () => {
  test('D11 waits for what runs, and takes nothing more', async () => {
    const world = createWorld({ worker: { slots: 1, drainGraceMs: 30_000 } })
    const [first, second] = [await world.command(), await world.command()]
    world.worker.start()
    await world.breathe()
    const stopped = world.worker.stop()
    await world.clock.advance(20_000)
    expect(world.process().signals).toEqual([])
    world.process().exit({ code: 0 })
    await world.breathe()
    await stopped
    expect(await world.job(first)).toMatchObject({ state: 'COMPLETED' })
    expect(await world.job(second)).toMatchObject({ state: 'SCHEDULED', attempt: 0 })
  })

  test('D11 tells what still runs to stop, stores its log to the end and gives it back: nothing has failed', async () => {
    const world = createWorld({ worker: { drainGraceMs: 5_000 } })
    world.exec.behaviour = (process, signal) => {
      process.write('stdout', `got ${signal}\n`)
      process.exit({ code: 0 })
    }
    const jobId = await world.command({ retry: { maxAttempts: 1 } })
    world.worker.start()
    await world.breathe()
    const stopped = world.worker.stop()
    await world.clock.advance(5_000)
    await stopped
    expect(world.process().signals[0]).toMatchObject({ signal: 'SIGTERM' })
    expect(world.calls).toMatchObject({ release: 1, settle: 0 })
    expect(await world.job(jobId)).toMatchObject({ state: 'SCHEDULED', attempt: 1, failedAttempts: 0, lostAttempts: 0 })
    expect(await world.entries(jobId)).toMatchObject([
      { type: 3 },
      { type: 1, data: { text: 'got SIGTERM\n' } },
      { type: 5, data: { message: 'SIGTERM was sent: the worker is stopping' } },
      { type: 4, data: { exitCode: 0, error: 'given back: the worker is stopping' } },
    ])
  })

  test('D11 a stubborn one is killed after its own grace, and given back too', async () => {
    const world = createWorld({ worker: { drainGraceMs: 5_000 } })
    world.exec.behaviour = stubborn
    const jobId = await world.command({ execution: { graceMs: 3_000 } })
    world.worker.start()
    await world.breathe()
    const stopped = world.worker.stop()
    await world.clock.advance(9_000)
    await stopped
    expect(world.process().signals.slice(0, 2)).toMatchObject([{ signal: 'SIGTERM' }, { signal: 'SIGKILL' }])
    expect(await world.job(jobId)).toMatchObject({ state: 'SCHEDULED', attempt: 1, failedAttempts: 0 })
  })

  test('D11 a handler that answers when it is told to stop has answered; one that throws is given back', async () => {
    const stop = (ctx: HandlerContext) =>
      new Promise<void>((resolve) => ctx.signal.addEventListener('abort', () => resolve()))
    const world = createWorld({
      worker: { drainGraceMs: 1_000 },
      handlers: {
        answers: async (ctx) => {
          await stop(ctx)
          return 'just in time'
        },
        throws: async (ctx) => {
          await stop(ctx)
          ctx.signal.throwIfAborted()
        },
      },
    })
    const [answers, throws] = [await world.submit(run('answers')), await world.submit(run('throws'))]
    world.worker.start()
    await world.breathe()
    const stopped = world.worker.stop()
    await world.clock.advance(1_100)
    await stopped
    expect(await world.job(answers)).toMatchObject({ state: 'COMPLETED', result: 'just in time' })
    expect(await world.job(throws)).toMatchObject({ state: 'SCHEDULED', failedAttempts: 0 })
  })

  test('L05 told twice it stops now: what runs is killed and given back', async () => {
    const world = createWorld({ worker: { drainGraceMs: 30_000 }, handlers: { waits: () => new Promise(() => {}) } })
    world.exec.behaviour = stubborn
    const [program, handler] = [await world.command(), await world.submit(run('waits'))]
    world.worker.start()
    await world.breathe()
    const first = world.worker.stop()
    await world.breathe()
    expect(world.process().signals).toEqual([])
    const second = world.worker.stop()
    await world.breathe()
    await Promise.all([first, second])
    expect(world.process().signals[0]).toMatchObject({ signal: 'SIGKILL' })
    for (const jobId of [program, handler]) {
      expect(await world.job(jobId)).toMatchObject({ state: 'SCHEDULED', attempt: 1, failedAttempts: 0 })
    }
    await world.worker.stop()
  })

  test('a store that does not answer cannot keep a worker from stopping', async () => {
    const world = createWorld({
      worker: { drainGraceMs: 1_000 },
      wrap: (service) => ({ ...service, settle: () => Promise.reject(new StoreBusy('busy')) }),
    })
    const jobId = await world.command({ execution: { graceMs: 4_000 } })
    world.exec.onStart = (process) => process.exit({ code: 0 })
    world.worker.start()
    await world.breathe()
    const stopped = world.worker.stop()
    await world.clock.advance(5_100)
    await stopped
    expect(await world.job(jobId)).toMatchObject({ state: 'RUNNING' })
    expect(world.clock.timers).toBe(0)
  })

  test('a store that does not take jobs back cannot either, nor one that fails only when the worker stops', async () => {
    let fail = () => {}
    const failing = new Promise<never>((_, reject) => {
      fail = () => reject(new StoreBusy('busy'))
    })
    failing.catch(() => {})
    const world = createWorld({
      worker: { drainGraceMs: 0, slots: 2 },
      handlers: { quick: () => 1 },
      wrap: (service) => ({
        ...service,
        release: () => Promise.reject(new StoreBusy('busy')),
        settle: () => failing,
      }),
    })
    await world.command({ execution: { graceMs: 4_000 } })
    await world.submit(run('quick'), { execution: { graceMs: 4_000 } })
    world.worker.start()
    await world.breathe()
    const stopped = world.worker.stop()
    await world.breathe()
    fail()
    await world.clock.advance(4_100)
    await stopped
    expect(world.process().isAlive).toBe(false)
  })

  test('L05 a log that cannot be stored does not delay a worker that stops now', async () => {
    const world = createWorld({
      wrap: (service) => ({ ...service, publish: () => Promise.reject(new StoreBusy('busy')) }),
    })
    const jobId = await world.command()
    world.worker.start()
    await world.breathe()
    const stopped = world.worker.stopNow()
    await world.breathe()
    await stopped
    expect(await world.job(jobId)).toMatchObject({ state: 'SCHEDULED', attempt: 1 })
  })

  test('what is claimed while it stops is given back, and it waits for that', async () => {
    let answer = () => {}
    const world: World = createWorld({
      wrap: (service) => ({
        ...service,
        release: (hold) => sleep(world.clock, 50).then(() => service.release(hold)),
        claim: async (request) => {
          const claims = await service.claim({ ...request, waitMs: 0 })
          await new Promise<void>((resolve) => {
            answer = resolve
          })
          return claims
        },
      }),
    })
    const jobId = await world.command()
    world.worker.start()
    await world.breathe()
    const stopped = world.worker.stop()
    answer()
    await world.run(stopped)
    expect(world.exec.processes).toHaveLength(0)
    expect(await world.job(jobId)).toMatchObject({ state: 'SCHEDULED', attempt: 1, failedAttempts: 0 })
  })

  test('before it was started, twice, or after it has stopped is fine', async () => {
    const world = createWorld()
    await world.worker.stop()
    await world.worker.stop()
    await world.worker.stopNow()
    world.worker.start()
    await world.command()
    await world.breathe()
    expect(world.calls.claim).toBe(0)
    expect(world.clock.timers).toBe(0)
  })
})

describe('a worker that polls', () => {
  test('asks for as many jobs as it has slots, and is told how to wait', async () => {
    const asked: number[] = []
    const world = createWorld({
      worker: { slots: 3 },
      wrap: (service) => ({
        ...service,
        claim: (request) => {
          asked.push(request.max, request.waitMs)
          return service.claim(request)
        },
      }),
    })
    for (let job = 0; job < 2; job++) await world.command()
    world.worker.start()
    await world.breathe()
    expect(world.exec.processes).toHaveLength(2)
    expect(asked).toEqual([3, 20_000, 1, 20_000])
    for (let job = 0; job < 3; job++) await world.command()
    await world.breathe()
    // Saturated: it does not ask for more than it can run.
    expect(world.exec.processes).toHaveLength(3)
    expect(world.calls.claim).toBe(2)
    expect(world.worker.running()).toHaveLength(3)
    world.process().exit({ code: 0 })
    await world.breathe()
    expect(world.exec.processes).toHaveLength(4)
    await world.worker.stopNow()
  })

  test('B15 a store that refuses for ten minutes is asked ever more slowly, and work goes on when it is back', async () => {
    let isDown = true
    const world = createWorld({
      handlers: { work: () => 1 },
      wrap: (service) => ({
        ...service,
        claim: (request) => (isDown ? Promise.reject(new StoreBusy('busy')) : service.claim(request)),
      }),
    })
    const jobId = await world.submit(run('work'))
    world.worker.start()
    await world.clock.advance(600_000)
    expect(world.calls.claim).toBeGreaterThan(20)
    expect(world.calls.claim).toBeLessThan(60)
    isDown = false
    await world.clock.advance(30_000)
    expect(await world.job(jobId)).toMatchObject({ state: 'COMPLETED' })
    expect(world.warnings()[0]).toContain("queue 'default' gives no jobs: busy")
    await world.worker.stop()
  })

  test.each([
    ['answers at once with nothing', () => Promise.resolve([])],
    ['refuses for good', () => Promise.reject(new QueueUnknown('default'))],
    ['breaks', () => Promise.reject(new TypeError('a bug'))],
  ])('B15 a service that %s is never asked in a busy loop', async (_, claim) => {
    const world = createWorld({ wrap: (service) => ({ ...service, claim }) })
    world.worker.start()
    await world.clock.advance(60_000)
    expect(world.calls.claim).toBeLessThan(1_300)
    await world.worker.stop()
    expect(world.clock.timers).toBe(0)
  })

  const twoQueues = (slots: number, options: Parameters<typeof createWorld>[0] = {}) =>
    createWorld({ ...options, worker: { slots, queues: ['default', 'other'] } })
  const startedFrom = (world: World) => world.exec.processes.map(({ command }) => command.argv[0])
  const submitTo = (world: World, queue: string) => world.submit({ kind: 'command', argv: [queue] }, { queue })

  test('of two queues takes from whichever has work, with all its slots', async () => {
    const world = twoQueues(4)
    world.worker.start()
    await world.breathe()
    for (let job = 0; job < 6; job++) await submitTo(world, 'other')
    await world.breathe()
    expect(startedFrom(world)).toEqual(['other', 'other', 'other', 'other'])
    expect(world.calls.release).toBe(0)
    await world.worker.stopNow()
  })

  test('of two queues that both have work takes in turn, and starves none', async () => {
    const world = twoQueues(1)
    for (let job = 0; job < 3; job++) await submitTo(world, 'default')
    for (let job = 0; job < 3; job++) await submitTo(world, 'other')
    world.exec.onStart = (process) => void world.clock.setTimeout(() => process.exit({ code: 0 }), 100)
    world.worker.start()
    await world.clock.advance(2_000)
    expect(startedFrom(world)).toEqual(['default', 'other', 'default', 'other', 'default', 'other'])
    expect(world.calls.release).toBe(0)
    await world.worker.stop()
  })

  test('of two queues leaves work alone that it has no slot for', async () => {
    const world = twoQueues(1)
    world.worker.start()
    await world.breathe()
    await submitTo(world, 'default')
    await world.breathe()
    const waits = await submitTo(world, 'other')
    await world.breathe()
    expect(await world.job(waits)).toMatchObject({ state: 'SCHEDULED', attempt: 0 })
    world.process().exit({ code: 0 })
    await world.breathe()
    expect(await world.job(waits)).toMatchObject({ state: 'RUNNING', attempt: 1 })
    await world.worker.stopNow()
  })

  test('of two queues that get work at one instant gives back what is too much', async () => {
    const world = twoQueues(1)
    world.worker.start()
    await world.breathe()
    const [a, b] = await Promise.all([submitTo(world, 'default'), submitTo(world, 'other')])
    await world.breathe()
    expect(world.exec.processes).toHaveLength(1)
    world.process().exit({ code: 0 })
    await world.breathe()
    expect(world.exec.processes).toHaveLength(2)
    world.process().exit({ code: 0 })
    await world.breathe()
    for (const jobId of [a, b]) expect(await world.job(jobId)).toMatchObject({ state: 'COMPLETED', failedAttempts: 0 })
    await world.worker.stop()
  })

  test('says when it has nothing to do', async () => {
    let idle = 0
    const world = createWorld({ handlers: { work: () => 1 } })
    const leave = world.worker.onIdle(() => {
      idle += 1
    })
    world.worker.start()
    await world.submit(run('work'))
    await world.breathe()
    expect(idle).toBe(1)
    leave()
    await world.submit(run('work'))
    await world.breathe()
    expect(idle).toBe(1)
    await world.worker.stop()
  })
})

describe('a bug', () => {
  test.each([
    ['in the log of a program', { createLog: true }],
    ['in starting a program', { spawn: true }],
    ['in the store', { settle: true }],
  ])('L01 %s ends that attempt and nothing else: the store tries again, within its limits', async (_, broken) => {
    const world: World = createWorld({
      handlers: { fine: () => 'fine' },
      wrap: (service) => ({
        ...service,
        settle: (hold, outcome, closing) =>
          'settle' in broken && outcome.kind === 'done' && typeof outcome.result === 'object'
            ? Promise.reject(new TypeError('a bug'))
            : service.settle(hold, outcome, closing),
      }),
    })
    if ('spawn' in broken) world.exec.spawn = () => Promise.reject(new TypeError('a bug'))
    if ('createLog' in broken) world.breakLogs()
    world.exec.onStart = (process) => process.exit({ code: 0 })
    const jobId = await world.command()
    world.worker.start()
    await world.breathe()
    const fine = await world.submit(run('fine'))
    await world.breathe()
    expect(await world.job(fine)).toMatchObject({ state: 'COMPLETED' })
    expect(await world.job(jobId)).toMatchObject({ state: 'RUNNING' })
    expect(world.worker.busy()).toBe(0)
    expect(world.warnings()[0]).toContain('a bug')
    const sweeper = world.node('sweeper')
    for (let passed = 0; passed < 3_500_000; passed += 10_000) {
      await world.clock.advance(10_000)
      await sweeper.store.sweep.run()
    }
    expect(await world.job(jobId)).toMatchObject({ state: 'FAILED' })
    await world.worker.stop()
  })

  test('L01 in the short way of a handler ends that attempt and nothing else', async () => {
    let isBroken = true
    const world = createWorld({
      handlers: { work: () => 'fine' },
      wrap: (service) => ({
        ...service,
        settle: (...args) => {
          if (!isBroken) return service.settle(...args)
          isBroken = false
          throw new TypeError('a bug')
        },
      }),
    })
    const [first, second] = [await world.submit(run('work')), await world.submit(run('work'))]
    world.worker.start()
    await world.breathe()
    const states = await Promise.all([world.job(first), world.job(second)])
    expect(states.map(({ state }) => state).sort()).toEqual(['COMPLETED', 'RUNNING'])
    expect(world.worker.busy()).toBe(0)
    expect(world.warnings()).toEqual([expect.stringContaining('was dropped: a bug')])
    await world.worker.stop()
  })
})

describe('start and stop, many times', () => {
  test.each([1, 2, 3, 4, 5, 6, 7, 8])(
    'L05 seed %i: whatever is running, nothing is lost, run twice at once, or left behind',
    async (seed) => {
      const random = createSeededRandom(seed, 'stress')
      const draw = (below: number) => Math.floor(random.next() * below)
      const world: World = createWorld({
        seed,
        handlers: {
          quick: () => 1,
          slow: (ctx) =>
            new Promise((resolve) => {
              world.clock.setTimeout(() => resolve(2), draw(3_000))
              ctx.signal.addEventListener('abort', () => resolve(undefined))
            }),
        },
        worker: { slots: 1 + draw(4), drainGraceMs: draw(2_000) },
      })
      world.exec.behaviour = random.next() < 0.5 ? obedient : stubborn
      world.exec.onStart = (process) => {
        const id = process.command.env['MILLRACE_JOB_ID'] ?? ''
        for (const other of world.exec.processes) {
          if (other !== process && other.isAlive) expect(other.command.env['MILLRACE_JOB_ID']).not.toBe(id)
        }
        world.clock.setTimeout(() => process.exit({ code: 0 }), draw(3_000))
      }
      const jobs: string[] = []
      for (let job = 0; job < 12; job++) {
        const params = [run('quick'), run('slow'), { kind: 'command', argv: ['x'] } as const][draw(3)]
        jobs.push(await world.submit(params as never, { execution: { graceMs: 500 } }))
      }
      for (let round = 0; round < 10; round++) {
        const worker = world.another({ slots: 1 + draw(4), drainGraceMs: draw(2_000) })
        if (random.next() < 0.9) worker.start()
        await world.clock.advance(draw(2_000))
        const stopping = [worker.stop()]
        if (random.next() < 0.5) {
          await world.clock.advance(draw(500))
          stopping.push(random.next() < 0.5 ? worker.stop() : worker.stopNow())
        }
        await world.run(Promise.all(stopping))
        expect(worker.busy()).toBe(0)
        expect(worker.running()).toEqual([])
        expect(world.exec.processes.filter(({ isAlive }) => isAlive)).toEqual([])
      }
      world.worker.start()
      await world.clock.advance(60_000)
      for (const jobId of jobs) expect(await world.job(jobId)).toMatchObject({ state: 'COMPLETED', failedAttempts: 0 })
      await world.worker.stop()
      await world.clock.advance(5_000)
      expect(world.clock.timers).toBe(0)
    },
  )
})
