import { describe, expect, test } from 'vitest'
import { StoreBusy } from '../../src/jobs/faults.ts'
import type { WorkerService } from '../../src/worker/service.ts'
import { obedient, stubborn, undying } from './sim-exec.ts'
import { createWorld } from './support.ts'

const stopAfter = { graceMs: 5_000 }

/** A store whose answers to publishing were made before anybody watched. */
const publishTellsNothing = (service: WorkerService): WorkerService => ({
  ...service,
  publish: async (...given) => ({ ...(await service.publish(...given)), watchedUntil: undefined }),
})

describe('a command', () => {
  test.each([
    ['D02 code 0', { code: 0 }, { state: 'COMPLETED', result: { exitCode: 0 } }, { exitCode: 0 }],
    [
      'D02 code 1',
      { code: 1 },
      { state: 'FAILED', error: 'exited with code 1' },
      { exitCode: 1, error: 'exited with code 1' },
    ],
    [
      'D02 a signal',
      { signal: 'SIGSEGV' },
      { state: 'FAILED', error: 'ended by signal SIGSEGV' },
      { signal: 'SIGSEGV', error: 'ended by signal SIGSEGV' },
    ],
  ])('%s is stored as it was', async (_, exit, job, end) => {
    const world = createWorld()
    const jobId = await world.command()
    world.exec.onStart = (process) => {
      process.write('stdout', 'one\n')
      process.write('stderr', 'two\n')
      process.exit(exit)
    }
    world.worker.start()
    await world.breathe()
    expect(await world.job(jobId)).toMatchObject(job)
    expect(await world.entries(jobId)).toMatchObject([
      { type: 3, data: { attempt: 1, pid: 100, pidStart: 'start-100', argv: ['program', 'argument'] } },
      { type: 1, data: { stream: 'stdout', text: 'one\n' } },
      { type: 1, data: { stream: 'stderr', text: 'two\n' } },
      { type: 4, data: end },
    ])
    expect(world.process().signals).toEqual([])
    await world.worker.stop()
  })

  test('an answer that read the row before somebody came to watch does not take the watching back', async () => {
    const world = createWorld({ wrap: publishTellsNothing })
    const jobId = await world.command()
    world.worker.start()
    await world.breathe()
    expect(world.logs.newest?.watched).toBe(false)
    world.notices.tell(jobId, { watchedUntil: world.clock.now() + 60_000 })
    world.process().write('stdout', 'one\n')
    await world.breathe()
    expect(world.calls.publish).toBeGreaterThan(0)
    expect(world.logs.newest?.watched).toBe(true)
    world.process().exit({ code: 0 })
    await world.worker.stop()
  })

  test('whoever watched a job before it began watches it from its first line on', async () => {
    const world = createWorld({ wrap: publishTellsNothing })
    const jobId = await world.command()
    await world.a.store.watch(jobId)
    world.worker.start()
    await world.breathe()
    expect(world.logs.newest?.watched).toBe(true)
    world.process().exit({ code: 0 })
    await world.worker.stop()
  })

  test('D01 a program that cannot be started is a failed attempt like any other, with one terminal event', async () => {
    const world = createWorld()
    const jobId = await world.command({ retry: { maxAttempts: 2, backoffBaseMs: 0, backoffCapMs: 0 } })
    world.exec.refusal = { error: "there is no program 'program' (ENOENT)" }
    world.worker.start()
    await world.breathe()
    const error = "there is no program 'program' (ENOENT)"
    expect(await world.job(jobId)).toMatchObject({ state: 'FAILED', error, attempt: 2 })
    for (const attempt of [1, 2]) {
      expect(await world.entries(jobId, attempt)).toMatchObject([{ type: 3 }, { type: 4, data: { error } }])
    }
    await world.worker.stop()
  })

  test('D03 E09 output of what a process leaves behind is taken for a while, then cut with a marker, and its group killed', async () => {
    const world = createWorld()
    const jobId = await world.command()
    world.exec.onStart = (process) => process.exit({ code: 0 }, 'held')
    world.worker.start()
    await world.breathe()
    world.process().write('stdout', 'from a grandchild\n')
    await world.clock.advance(1_500)
    expect(await world.job(jobId)).toMatchObject({ state: 'RUNNING' })
    expect(world.process().signals).toEqual([])
    await world.clock.advance(600)
    world.process().write('stdout', 'too late\n')
    await world.breathe()
    expect(world.process().signals).toMatchObject([{ signal: 'SIGKILL' }])
    expect(world.process().isCut).toBe(true)
    expect(await world.job(jobId)).toMatchObject({ state: 'COMPLETED' })
    expect(await world.entries(jobId)).toMatchObject([
      { type: 3 },
      { type: 1, data: { text: 'from a grandchild\n' } },
      { type: 7, data: { stream: 'stdout', reason: expect.stringContaining('after it had ended') } },
      { type: 4, data: { exitCode: 0 } },
    ])
    await world.worker.stop()
  })

  test('E09 what a process wrote itself is never cut because we were slow to read it', async () => {
    let isBusy = true
    const world = createWorld({
      log: { highWater: 10 },
      wrap: (service) => ({
        ...service,
        publish: (hold, items) => (isBusy ? Promise.reject(new StoreBusy('busy')) : service.publish(hold, items)),
      }),
    })
    const jobId = await world.command()
    world.exec.onStart = (process) => {
      for (const line of [1, 2, 3, 4, 5]) process.write('stdout', `line ${line} is long enough\n`)
      process.exit({ code: 0 })
    }
    world.worker.start()
    await world.clock.advance(15_000)
    expect([...world.process().paused]).toEqual(['stdout'])
    isBusy = false
    await world.clock.advance(3_000)
    expect(await world.job(jobId)).toMatchObject({ state: 'COMPLETED' })
    const entries = await world.entries(jobId)
    expect(entries.map(({ type }) => type)).toEqual([3, 1, 1, 1, 1, 1, 4])
    await world.worker.stop()
  })

  test('E09 what holds a pipe open is cut off once we read again', async () => {
    let isBusy = true
    const world = createWorld({
      log: { highWater: 10 },
      wrap: (service) => ({
        ...service,
        publish: (hold, items) => (isBusy ? Promise.reject(new StoreBusy('busy')) : service.publish(hold, items)),
      }),
    })
    const jobId = await world.command()
    world.exec.onStart = (process) => {
      process.write('stdout', 'more than there is room for\n')
      process.exit({ code: 0 }, 'held')
    }
    world.worker.start()
    await world.clock.advance(15_000)
    expect(world.process().isCut).toBe(false)
    isBusy = false
    await world.clock.advance(3_500)
    expect(world.process().isCut).toBe(true)
    expect(await world.job(jobId)).toMatchObject({ state: 'COMPLETED' })
    await world.worker.stop()
  })

  test('E08 a pipe is paused while the log is behind, and nothing is lost', async () => {
    let release = () => {}
    const gate = new Promise<void>((resolve) => {
      release = resolve
    })
    const world = createWorld({
      log: { highWater: 100 },
      wrap: (service) => ({ ...service, publish: (hold, items) => gate.then(() => service.publish(hold, items)) }),
    })
    const jobId = await world.command()
    world.worker.start()
    await world.breathe()
    for (let line = 0; line < 100; line++) world.process().write('stdout', `line ${line}\n`)
    await world.breathe()
    expect([...world.process().paused]).toEqual(['stdout'])
    release()
    await world.breathe()
    world.process().exit({ code: 0 })
    await world.breathe()
    const entries = await world.entries(jobId)
    const text = entries.map(({ data }) => data['text'] ?? '').join('')
    expect(text).toBe(Array.from({ length: 100 }, (_, line) => `line ${line}\n`).join(''))
    expect(await world.job(jobId)).toMatchObject({ state: 'COMPLETED' })
    await world.worker.stop()
  })

  test('D05 one that ignores SIGTERM is killed after its grace, and the log says when both were sent', async () => {
    const world = createWorld()
    const jobId = await world.command({ timeoutMs: 3_000, execution: stopAfter })
    world.exec.behaviour = stubborn
    world.worker.start()
    await world.clock.advance(20_000)
    expect(world.process().signals.slice(0, 2)).toEqual([
      { signal: 'SIGTERM', at: 3_000 },
      { signal: 'SIGKILL', at: 8_000 },
    ])
    expect(await world.job(jobId)).toMatchObject({ state: 'FAILED', error: 'took longer than 3000 ms' })
    const entries = await world.entries(jobId)
    const began = entries[0]?.at ?? 0
    expect(entries).toMatchObject([
      { type: 3 },
      { type: 5, at: began + 3_000, data: { message: 'SIGTERM was sent: the job took longer than 3000 ms' } },
      { type: 5, at: began + 8_000, data: { message: 'SIGKILL was sent: the job took longer than 3000 ms' } },
      { type: 4, data: { signal: 'SIGKILL', error: 'took longer than 3000 ms' } },
    ])
    await world.worker.stop()
  })

  test('one that does not even die of SIGKILL does not hold the worker for ever', async () => {
    const world = createWorld()
    const jobId = await world.command({ timeoutMs: 1_000, execution: stopAfter })
    world.exec.behaviour = undying
    world.worker.start()
    await world.clock.advance(17_000)
    expect(await world.job(jobId)).toMatchObject({ state: 'FAILED', error: 'took longer than 1000 ms' })
    expect(world.worker.busy()).toBe(0)
    await world.worker.stop()
  })

  test('others of the group have what is left of the grace when the leader dies first, then they are killed', async () => {
    const world = createWorld()
    const jobId = await world.command({ timeoutMs: 1_000, execution: stopAfter })
    world.exec.behaviour = (process, signal) => process.exit({ signal }, 'held')
    world.worker.start()
    await world.clock.advance(3_000)
    world.process().write('stdout', 'still cleaning up\n')
    await world.clock.advance(2_500)
    expect(world.process().signals).toMatchObject([{ signal: 'SIGTERM' }])
    await world.clock.advance(1_000)
    expect(world.process().signals).toMatchObject([{ signal: 'SIGTERM' }, { signal: 'SIGKILL', at: 6_000 }])
    expect(await world.job(jobId)).toMatchObject({ state: 'FAILED' })
    const texts = (await world.entries(jobId)).map(({ data }) => data['text'])
    expect(texts).toContain('still cleaning up\n')
    await world.worker.stop()
  })

  test.each([
    ['the exit comes first', 'exit', { state: 'COMPLETED', result: { exitCode: 0 } }],
    ['the limit comes first', 'limit', { state: 'FAILED', error: 'took longer than 1000 ms' }],
  ])('D09 time limit and exit at one instant: %s, and there is one end', async (_, first, job) => {
    const world = createWorld()
    const jobId = await world.command({ timeoutMs: 1_000 })
    world.exec.behaviour = (process) => process.exit({ code: 0 })
    if (first === 'exit')
      world.exec.onStart = (process) => void world.clock.setTimeout(() => process.exit({ code: 0 }), 1_000)
    world.worker.start()
    await world.clock.advance(2_000)
    expect(await world.job(jobId)).toMatchObject(job)
    expect((await world.entries(jobId)).filter(({ type }) => type === 4)).toHaveLength(1)
    await world.worker.stop()
  })

  test('a cancelled one is told at once in the same process, and settled as cancelled', async () => {
    const world = createWorld()
    const jobId = await world.command()
    world.worker.start()
    await world.breathe()
    await world.a.store.cancel(jobId)
    world.notices.tell(jobId, { cancelRequested: true })
    world.notices.tell(jobId, { cancelRequested: true })
    await world.breathe()
    expect(world.process().signals[0]).toMatchObject({ signal: 'SIGTERM' })
    expect(await world.job(jobId)).toMatchObject({ state: 'CANCELLED' })
    expect((await world.entries(jobId)).at(-1)).toMatchObject({
      type: 4,
      data: { signal: 'SIGTERM', error: 'cancelled' },
    })
    await world.worker.stop()
  })

  test('a cancelled one hears of it with its next heartbeat if nobody tells it sooner', async () => {
    const world = createWorld()
    const jobId = await world.command()
    world.worker.start()
    await world.breathe()
    await world.a.store.cancel(jobId)
    await world.clock.advance(19_000)
    expect(world.process().isAlive).toBe(true)
    await world.clock.advance(1_100)
    expect(await world.job(jobId)).toMatchObject({ state: 'CANCELLED' })
    await world.worker.stop()
  })

  test('a cancelled one hears of it with what it publishes', async () => {
    const world = createWorld()
    const jobId = await world.command()
    world.worker.start()
    await world.breathe()
    await world.a.store.cancel(jobId)
    world.process().write('stdout', 'still here\n')
    await world.breathe()
    expect(await world.job(jobId)).toMatchObject({ state: 'CANCELLED' })
    await world.worker.stop()
  })

  test('one that is cancelled while it is being started is stopped as soon as it has', async () => {
    const world = createWorld()
    let open = () => {}
    world.exec.gate = new Promise((resolve) => {
      open = resolve
    })
    const jobId = await world.command()
    world.worker.start()
    await world.breathe()
    await world.a.store.cancel(jobId)
    world.notices.tell(jobId, { cancelRequested: true })
    open()
    await world.breathe()
    expect(world.process().signals[0]).toMatchObject({ signal: 'SIGTERM' })
    expect(await world.job(jobId)).toMatchObject({ state: 'CANCELLED' })
    await world.worker.stop()
  })

  test('its slot is free when it has ended, not when its end was stored', async () => {
    let open = () => {}
    const gate = new Promise<void>((resolve) => {
      open = resolve
    })
    const world = createWorld({
      worker: { slots: 1 },
      wrap: (service) => ({ ...service, settle: (...args) => gate.then(() => service.settle(...args)) }),
    })
    world.exec.behaviour = obedient
    const [first, second] = [await world.command(), await world.command()]
    world.worker.start()
    await world.breathe()
    expect(world.exec.processes).toHaveLength(1)
    world.process().exit({ code: 0 })
    await world.breathe()
    expect(world.exec.processes).toHaveLength(2)
    expect(world.worker.busy()).toBe(2)
    expect(world.worker.running()).toHaveLength(2)
    open()
    await world.breathe()
    expect(await world.job(first)).toMatchObject({ state: 'COMPLETED' })
    expect(await world.job(second)).toMatchObject({ state: 'RUNNING' })
    await world.worker.stopNow()
  })

  test('M19 its arguments reach the program as they are, one by one', async () => {
    const world = createWorld()
    const argv = ['echo', '$(rm -rf /)', '; true', '`id`', 'a \'b\' "c"']
    await world.submit({ kind: 'command', argv, cwd: '/somewhere', stdin: 'input' })
    world.worker.start()
    await world.breathe()
    expect(world.process().command).toMatchObject({ argv, cwd: '/somewhere', stdin: 'input' })
    await world.worker.stopNow()
  })

  test('M12 it sees of our environment what the list allows, its own, and whom it runs for', async () => {
    const world = createWorld({
      environment: { PATH: '/bin', LC_ALL: 'C', AWS_SECRET_ACCESS_KEY: 'secret', MILLRACE_TOKEN: 't', HOME: '/home/a' },
    })
    const env = { HOME: '/own', LD_LIBRARY_PATH: '/lib', MILLRACE_JOB_ID: 'forged' }
    const jobId = await world.submit({ kind: 'command', argv: ['env'], env })
    world.worker.start()
    await world.breathe()
    expect(world.process().command.env).toEqual({
      PATH: '/bin',
      LC_ALL: 'C',
      HOME: '/own',
      LD_LIBRARY_PATH: '/lib',
      MILLRACE_JOB_ID: jobId,
      MILLRACE_ATTEMPT: '1',
    })
    await world.worker.stopNow()
  })
})
