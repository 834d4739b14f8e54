import { spawn as spawnNode } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { workerOptions } from '../../src/config/sections/worker.ts'
import type { EnqueueRequest, JobParams } from '../../src/jobs/job.ts'
import { systemClock } from '../../src/kernel/clock.ts'
import { systemRandom } from '../../src/kernel/random.ts'
import type { Child } from '../../src/worker/exec.ts'
import { createHandlers } from '../../src/worker/handlers.ts'
import { killLeftovers } from '../../src/worker/leftovers.ts'
import { processStatus } from '../../src/worker/process-group.ts'
import { createSystemExec } from '../../src/worker/system-exec.ts'
import { createWorker, type Worker } from '../../src/worker/worker.ts'
import { createMemoryLog, itemOf } from './memory-log.ts'
import { createMemoryService, type MemoryService } from './memory-service.ts'

// Real processes: what the system does to them is the point. Nothing here waits for a time, only for events.

let directory: string
let service: MemoryService
let worker: Worker
/** What waited to be stored at the most. */
let waitingMax = 0
const highWater = 100_000
const environment = { PATH: process.env['PATH'] ?? '', HOME: '/nowhere', AWS_SECRET_ACCESS_KEY: 'secret' }

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'millrace-worker-'))
  service = createMemoryService()
  waitingMax = 0
  worker = createWorker(
    {
      clock: systemClock,
      random: systemRandom,
      emit: () => {},
      service,
      exec: createSystemExec({ clock: systemClock }),
      handlers: createHandlers(),
      environment,
      workerPrefix: 'test/',
      createLog: (claim, publish) =>
        createMemoryLog(systemClock, claim, publish, {
          highWater,
          waits: (bytes) => {
            waitingMax = Math.max(waitingMax, bytes)
          },
        }),
      bareEnd: (_, end) => itemOf(1, 4, systemClock.now(), end),
    },
    workerOptions.parse({ queues: ['default'], outputGraceMs: 300, drainGraceMs: 0 }),
  )
  worker.start()
})
afterEach(async () => {
  await worker.stopNow()
  rmSync(directory, { recursive: true, force: true })
})

type CommandParams = Omit<Extract<JobParams, { kind: 'command' }>, 'kind' | 'argv'>
const submit = (argv: readonly string[], rest: CommandParams = {}, request: Partial<EnqueueRequest> = {}) =>
  service.submit({ kind: 'command', argv, ...rest }, request)
/** Everything a program wrote to one stream. */
const written = (events: Awaited<ReturnType<MemoryService['ended']>>['events'], stream: string): string =>
  events.flatMap(({ data }) => (data['stream'] === stream && data['text'] !== undefined ? [data['text']] : [])).join('')
const isAlive = (pid: number): boolean => {
  const stat = existsSync(`/proc/${pid}/stat`) ? readFileSync(`/proc/${pid}/stat`, 'utf8') : ' ) Z'
  return stat.slice(stat.lastIndexOf(')') + 2, stat.lastIndexOf(')') + 3) !== 'Z'
}
const untilDead = async (pid: number): Promise<void> => {
  while (isAlive(pid)) await new Promise(setImmediate)
}

describe('a real program', () => {
  test.each([0, 1, 255])('D02 exits with %i, and exactly that is stored', async (code) => {
    const { outcome, end } = await service.ended(submit(['sh', '-c', `exit ${code}`]))
    expect(end).toMatchObject({ exitCode: code })
    expect(outcome).toEqual(
      code === 0 ? { kind: 'done', result: { exitCode: 0 } } : { kind: 'failed', error: `exited with code ${code}` },
    )
  })

  test.each(['SIGKILL', 'SIGTERM', 'SIGSEGV'])('D02 dies of %s, and exactly that is stored', async (signal) => {
    const { outcome, end } = await service.ended(submit(['sh', '-c', `kill -${signal.slice(3)} $$`]))
    expect(end).toMatchObject({ signal })
    expect(end['exitCode']).toBeUndefined()
    expect(outcome).toEqual({ kind: 'failed', error: `ended by signal ${signal}` })
  })

  test('writes to both streams, and is known by its pid and start', async () => {
    const { events } = await service.ended(submit(['sh', '-c', 'echo out; echo err >&2; cat /proc/$$/stat']))
    expect(events[0]).toMatchObject({ type: 3 })
    const stat = written(events, 'stdout').replace('out\n', '')
    expect(events[0]?.data['pid']).toBe(Number(stat.split(' ')[0]))
    expect(events[0]?.data['pidStart']).toBe(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19])
    expect(written(events, 'stderr')).toBe('err\n')
    expect(events.at(-1)?.type).toBe(4)
  })

  test('D01 that is not there fails with a text that says so', async () => {
    const { outcome, events } = await service.ended(submit(['no-such-program', 'x']))
    expect(outcome).toEqual({ kind: 'failed', error: "there is no program 'no-such-program' (ENOENT)" })
    expect(events.map(({ type }) => type)).toEqual([3, 4])
  })

  test('D01 that may not be run fails with a text that says so', async () => {
    const file = join(directory, 'plain.txt')
    writeFileSync(file, 'no program', { mode: 0o644 })
    const { outcome } = await service.ended(submit([file]))
    expect(outcome).toEqual({ kind: 'failed', error: `'${file}' may not be run (EACCES)` })
  })

  test('D01 whose directory is not there fails with a text that names the directory', async () => {
    const cwd = join(directory, 'missing')
    const { outcome } = await service.ended(submit(['true'], { cwd }))
    expect(outcome).toEqual({ kind: 'failed', error: `there is no directory '${cwd}' to run in (ENOENT)` })
  })

  test('D10 whose arguments are too large for the system fails with a text that says so', async () => {
    const { outcome } = await service.ended(submit(['true', 'x'.repeat(200_000)]))
    expect(outcome).toEqual({
      kind: 'failed',
      error: "arguments and environment of 'true' are larger than the system allows (E2BIG)",
    })
  })

  test('D10 with a NUL in an argument that got past the door fails, and the worker lives', async () => {
    const { outcome } = await service.ended(submit(['true', 'a\0b']))
    expect(outcome).toMatchObject({ kind: 'failed', error: expect.stringContaining('null bytes') })
    expect((await service.ended(submit(['true']))).outcome).toMatchObject({ kind: 'done' })
  })

  test('D07 that reads nothing of a large input, or closes it, is no harm', async () => {
    const stdin = 'x'.repeat(5_000_000)
    const { outcome } = await service.ended(submit(['sh', '-c', 'exec 0<&-; exit 3'], { stdin }))
    expect(outcome).toEqual({ kind: 'failed', error: 'exited with code 3' })
  })

  test('reads its input to the end', async () => {
    const { events } = await service.ended(submit(['wc', '-c'], { stdin: 'x'.repeat(300_000) }))
    expect(written(events, 'stdout').trim()).toBe('300000')
  })

  test('without input sees its end at once', async () => {
    const { events } = await service.ended(submit(['wc', '-c']))
    expect(written(events, 'stdout').trim()).toBe('0')
  })

  test('D03 E09 whose grandchild keeps its output open is over after a while: marked, and the grandchild killed', async () => {
    const { events, outcome } = await service.ended(submit(['sh', '-c', 'sleep 1000 & echo $!; exit 0']))
    expect(outcome).toMatchObject({ kind: 'done' })
    expect(events.map(({ type }) => type)).toEqual([3, 1, 7, 7, 4])
    await untilDead(Number(written(events, 'stdout')))
  })

  test('D05 that ignores SIGTERM is killed, with everything it started', async () => {
    const script = 'trap "" TERM; sleep 1000 & echo $!; while :; do sleep 1000; done'
    const jobId = submit(['sh', '-c', script], {}, { execution: { graceMs: 200 } })
    const grandchild = Number(await service.output(jobId))
    service.cancel(jobId)
    const { outcome, events, end } = await service.ended(jobId)
    expect(outcome).toEqual({ kind: 'cancelled' })
    expect(end).toMatchObject({ signal: 'SIGKILL', error: 'cancelled' })
    const remarks = events.filter(({ type }) => type === 5)
    expect(remarks.map(({ data }) => data['message'])).toEqual([
      'SIGTERM was sent: the job was cancelled',
      'SIGKILL was sent: the job was cancelled',
    ])
    expect(remarks[1]?.at).toBeGreaterThan(remarks[0]?.at ?? 0)
    await untilDead(grandchild)
  })

  test('D04 that leaves a daemon in a session of its own: when the job was stopped, the daemon is found and killed', async () => {
    const script = `setsid sh -c 'echo $$ > ${directory}/daemon; exec sleep 1000' >/dev/null 2>&1 & 
      while [ ! -s ${directory}/daemon ]; do sleep 0.01; done; echo ready; sleep 1000`
    const jobId = submit(['sh', '-c', script])
    await service.output(jobId)
    const daemon = Number(readFileSync(join(directory, 'daemon'), 'utf8'))
    expect(isAlive(daemon)).toBe(true)
    service.cancel(jobId)
    await service.ended(jobId)
    expect(isAlive(daemon)).toBe(false)
  })

  test('D08 an orphan of a dead runtime is found by its mark and killed with its group, and nobody else is', async () => {
    const orphan = (jobId: string) =>
      new Promise<number>((resolve) => {
        // A process in between that ends at once, so that the rest is an orphan as after a crash.
        const between = spawnNode('sh', ['-c', "setsid sh -c 'sleep 1000 & echo $!; wait' 2>/dev/null & exit 0"], {
          env: { PATH: environment.PATH, MILLRACE_JOB_ID: jobId, MILLRACE_ATTEMPT: '2' },
          stdio: ['ignore', 'pipe', 'ignore'],
        })
        between.stdout.once('data', (bytes: Buffer) => resolve(Number(bytes.toString())))
      })
    const [lost, other] = [await orphan('job-lost'), await orphan('job-other')]
    expect(await killLeftovers({ clock: systemClock }, [{ jobId: 'job-lost', attempt: 1 }])).toEqual({
      killed: 0,
      left: 0,
    })
    expect(isAlive(lost)).toBe(true)
    const { killed, left } = await killLeftovers({ clock: systemClock }, [{ jobId: 'job-lost' }])
    expect(killed).toBeGreaterThanOrEqual(2)
    expect(left).toBe(0)
    expect(isAlive(lost)).toBe(false)
    expect(isAlive(other)).toBe(true)
    await killLeftovers({ clock: systemClock }, [{ jobId: 'job-other', attempt: 2 }])
    expect(isAlive(other)).toBe(false)
  })

  test('E08 that writes faster than the log stores is made to wait, and nothing is lost', async () => {
    service.slowDown()
    const lines = 200_000
    const jobId = submit(['sh', '-c', `seq 1 ${lines}; echo done >&2`])
    const { events, outcome } = await service.ended(jobId)
    expect(outcome).toMatchObject({ kind: 'done' })
    expect(written(events, 'stdout')).toBe(Array.from({ length: lines }, (_, at) => `${at + 1}\n`).join(''))
    expect(written(events, 'stderr')).toBe('done\n')
    // The mark, and what was read before the pipes were paused.
    expect(waitingMax).toBeGreaterThan(highWater)
    expect(waitingMax).toBeLessThan(highWater + 4 * 65_536)
  })

  test('E08 a pipe that waits goes on waiting when the process has ended, however much its grandchildren write', async () => {
    const child = (await createSystemExec({ clock: systemClock }).spawn({
      argv: ['sh', '-c', 'echo first; while [ ! -e go ]; do sleep 0.01; done; yes & exit 0'],
      cwd: directory,
      env: environment,
    })) as Child
    let chunks = 0
    child.onOutput('stdout', () => {
      chunks += 1
      if (chunks > 1) return
      child.pause('stdout')
      writeFileSync(join(directory, 'go'), '')
    })
    expect(await child.exited).toEqual({ code: 0 })
    for (let turn = 0; turn < 200; turn++) await new Promise(setImmediate)
    expect(chunks).toBeLessThanOrEqual(3)
    child.kill('SIGKILL')
    expect(child.cut().map(({ stream }) => stream)).toContain('stdout')
    await child.closed
  })

  test('D11 that runs when the worker drains is told to stop and given back', async () => {
    const jobId = submit(['sh', '-c', 'trap "echo bye; exit 0" TERM; echo ready; while :; do sleep 0.01; done'])
    await service.output(jobId)
    await worker.stop()
    expect(service.released(jobId)).toBe(true)
    expect(written(service.events(jobId), 'stdout')).toBe('ready\nbye\n')
    expect(service.events(jobId).at(-1)).toMatchObject({
      type: 4,
      data: { error: 'given back: the worker is stopping' },
    })
  })

  test('L05 that runs when the worker stops now is killed and given back', async () => {
    const jobId = submit(['sh', '-c', 'trap "" TERM; echo $$; while :; do sleep 0.01; done'])
    const pid = Number(await service.output(jobId))
    await worker.stopNow()
    expect(service.released(jobId)).toBe(true)
    await untilDead(pid)
  })

  test('M12 does not see the secrets of the runtime', async () => {
    const { events } = await service.ended(submit(['env'], { env: { OWN: 'yes', HOME: '/own' } }))
    const names = written(events, 'stdout')
      .trim()
      .split('\n')
      .map((line) => line.split('=')[0])
    // Shells and loaders may add a few of their own, but `env` is started without one.
    expect(names.sort()).toEqual(['HOME', 'MILLRACE_ATTEMPT', 'MILLRACE_JOB_ID', 'OWN', 'PATH'])
  })

  test('M19 gets its arguments as they are: no shell reads them', async () => {
    const nasty = ['$(touch pwned)', '`touch pwned`', '; touch pwned', '| touch pwned', '$HOME', '*', 'a b', '"', "'"]
    const { events } = await service.ended(submit(['printf', '%s\\n', ...nasty], { cwd: directory }))
    expect(written(events, 'stdout')).toBe(nasty.map((one) => `${one}\n`).join(''))
    expect(existsSync(join(directory, 'pwned'))).toBe(false)
  })

  test('C01 whose attempt was fenced is killed, and nothing is settled', async () => {
    const jobId = submit(['sh', '-c', 'echo $$; sleep 1000'])
    const pid = Number(await service.output(jobId))
    const idle = new Promise<void>((resolve) => void worker.onIdle(resolve))
    service.fence(jobId)
    await idle
    await untilDead(pid)
    expect(service.events(jobId).some(({ type }) => type === 4)).toBe(false)
    expect(worker.running()).toEqual([])
  })

  test('knows itself by /proc', () => {
    expect(processStatus('self')?.startTime).toMatch(/^\d+$/)
    expect(processStatus(2 ** 30)).toBeUndefined()
  })
})
