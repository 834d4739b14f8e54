import { createServer } from 'node:net'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { eventually } from './support/eventually.ts'
import { createPlace, isAlive } from './support/place.ts'
import { type Service, startService } from './support/service.ts'

const place = createPlace(afterAll)
const shell = (script: string) => ['--', 'sh', '-c', script]
let up: Service
beforeAll(async () => {
  up = await startService(place, 'up')
})

const submit = async (...args: readonly string[]): Promise<string> => {
  const { code, stdout, stderr } = await place.run(['submit', ...args])
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  return stdout.trim()
}
const jsonLines = (text: string): readonly Record<string, unknown>[] =>
  text
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line))
const show = async (job: string) => jsonLines((await place.run(['show', '--json', job])).stdout)[0] ?? {}
/** A free port that nobody listens on. */
const closedPort = (): Promise<number> =>
  new Promise((resolve) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const address = server.address()
      server.close(() => resolve(typeof address === 'object' && address !== null ? address.port : 0))
    })
  })

describe('with `up` running', () => {
  test('submit --follow shows output as it comes and ends as the command does', async () => {
    const gate = place.gate('follow')
    const following = place.start(['submit', '--follow', ...shell('echo out; echo err >&2; read _ < follow; exit 4')])
    await Promise.all([following.stdout.until(/^out\n$/), following.stderr.until(/err\n/)])
    await gate.open()
    expect(await following.ended).toEqual({ code: 4, signal: null })
    expect(following.stderr.text()).toMatch(/^millrace: job (\S+)\nerr\nmillrace: job \1 FAILED: exited with code 4\n$/)
  })

  test('submit --wait ends as the command does, and prints nothing of it', async () => {
    const done = await place.run(['submit', '--wait', ...shell('echo out; exit 9')])
    expect(done).toMatchObject({ code: 9, stdout: '' })
  })

  test('the same request id makes one job', async () => {
    const first = await submit('--request-id', 'once', '--', 'true')
    const again = await place.run(['submit', '--request-id', 'once', '--', 'true'])
    expect(again.stdout.trim()).toBe(first)
    expect(again.stderr).toContain('an earlier request with this id had made the job')
    const other = await place.run(['submit', '--request-id', 'once', '--', 'false'])
    expect(other.code).toBe(6)
    expect(other.stderr).toContain(first)
  })

  test('G06 G07 monitor replays a finished job, whole or from any event, as text and as JSON', async () => {
    const job = await submit(...shell('for n in $(seq 1 120); do echo "line $n"; done; echo "oops" >&2'))
    const whole = await place.run(['monitor', job])
    const lines = Array.from({ length: 120 }, (_, n) => `line ${n + 1}`)
    expect(whole.code).toBe(0)
    expect(whole.stdout).toBe(`${lines.join('\n')}\n`)
    expect(whole.stderr).toBe(
      `millrace: attempt 1 started\noops\nmillrace: attempt 1 ended with exit code 0\nmillrace: job ${job} COMPLETED\n`,
    )
    // Event 1 is the start of the process, so that line n is event n + 1.
    const rest = await place.run(['monitor', '--from', '100', '--no-follow', '--filter', 'stdout', job])
    expect(rest.stdout.split('\n')[0]).toBe('line 99')
    const json = jsonLines((await place.run(['monitor', '--json', '--from', '78', job])).stdout)
    expect(json[0]).toMatchObject({ type: 'OUTPUT', attempt: 1, sequence: 78, stream: 'stdout', text: 'line 77\n' })
    expect(json.map(({ sequence }) => sequence).slice(0, 45)).toEqual(Array.from({ length: 45 }, (_, n) => n + 78))
    expect(json.slice(-3).map(({ type }) => type)).toEqual(['PROCESS_END', 'ATTEMPT_ENDED', 'JOB_ENDED'])
  })

  test('monitor --no-follow of a job that runs ends with what is stored now', async () => {
    const gate = place.gate('no-follow')
    const job = await submit(...shell('echo begun; read _ < no-follow; echo over'))
    const live = place.start(['monitor', job])
    await live.stdout.until(/begun/)
    const now = await place.run(['monitor', '--no-follow', job])
    expect(now).toMatchObject({ code: 0, stdout: 'begun\n' })
    await gate.open()
    expect(await live.ended).toEqual({ code: 0, signal: null })
    expect(live.stdout.text()).toBe('begun\nover\n')
  })

  test('JOB-10 cancel stops a job that runs; retry starts it again as the next attempt', async () => {
    const job = await submit(...shell('echo "$MILLRACE_ATTEMPT $$"; test $MILLRACE_ATTEMPT = 2 || exec sleep 1000'))
    const live = place.start(['monitor', job])
    const [, pid = ''] = await live.stdout.until(/^1 (\d+)\n/)
    const cancelled = await place.run(['cancel', job])
    expect(cancelled).toEqual({ code: 0, stdout: `${job} was told to stop\n`, stderr: '' })
    await live.ended
    expect(live.stderr.text()).toContain(`job ${job} CANCELLED`)
    expect(isAlive(Number(pid))).toBe(false)
    expect(await place.run(['retry', job])).toMatchObject({ code: 0 })
    await eventually(async () => (await show(job))['state'] === 'COMPLETED')
    expect(await show(job)).toMatchObject({ state: 'COMPLETED', attempt: 2, run: 2 })
    // Both attempts have a log of their own.
    expect((await place.run(['monitor', '--attempt', '1', '--no-follow', job])).stdout).toMatch(/^1 \d+\n/)
    expect((await place.run(['monitor', job])).stdout).toMatch(/^2 \d+\n$/)
    const again = await place.run(['cancel', job])
    expect(again).toMatchObject({ code: 6, stdout: `${job} had ended before: COMPLETED\n` })
  })

  test('list, show and dead list name jobs; the beginning of an id is enough, and a beginning of two is not', async () => {
    const job = await submit(...shell('exit 7'))
    await eventually(async () => (await show(job))['state'] === 'FAILED')
    const { stdout } = await place.run(['list', '--state', 'FAILED', '--limit', '1'])
    expect(stdout).toContain(job)
    // Ids sort by time: jobs that were made close together begin alike.
    const ids = jsonLines((await place.run(['list', '--json', '--limit', '1000'])).stdout).map(({ id }) => String(id))
    const short = Array.from({ length: 36 }, (_, n) => job.slice(0, n + 1)).find(
      (start) => ids.filter((id) => id.startsWith(start)).length === 1,
    )
    const shown = await place.run(['show', short ?? ''])
    expect(shown.stdout).toContain(job)
    expect(shown.stdout).toContain('exited with code 7')
    const ambiguous = await place.run(['show', job.slice(0, 6)])
    expect(ambiguous).toMatchObject({ code: 5, stdout: '' })
    const dead = await place.run(['dead', 'list'])
    expect(dead.stdout).toContain(job)
    expect(await place.run(['dead', 'redrive', job])).toMatchObject({ code: 0 })
    await eventually(async () => (await show(job))['attempt'] === 2)
  })

  test('handlers: a job of a name that nobody knows fails with that reason', async () => {
    const done = await place.run(['submit', '--follow', '--handler', 'nobody', '--input', '{}'])
    expect(done.code).toBe(1)
    expect(done.stderr).toMatch(/nobody/)
  })

  test('M02 who has no token, or the wrong one, is told so in one line', async () => {
    const env = { MILLRACE_DATA_DIR: `${place.folder}/elsewhere` }
    const without = await place.run(['list', '--server', up.address], { env })
    const wrong = await place.run(['list', '--server', up.address], { env: { ...env, MILLRACE_TOKEN: 'x'.repeat(43) } })
    for (const done of [without, wrong]) {
      expect(done).toMatchObject({ code: 4, stdout: '' })
      expect(done.stderr.trimEnd().split('\n')).toHaveLength(1)
    }
  })
})

describe('what goes wrong is one line and an exit code', () => {
  const unknown = '01890000-0000-7000-8000-000000000000'
  test.each([
    [2, ['list', '--no-such-flag'], /--no-such-flag.*millrace list --help/],
    [2, ['no-such-command'], /no-such-command/],
    [2, ['run', 'echo', 'hello'], /put -- before the command/],
    [2, ['submit'], /there is no command/],
    [2, ['monitor', '--from', '0', unknown], /--from/],
    [2, ['submit', '--timeout', 'soon', '--', 'true'], /--timeout/],
    [3, ['list', '--set', 'jobs.execution.leaseMs=1'], /leaseMs/],
    [3, ['list', '--set', 'no.such=1'], /no/],
    [5, ['show', unknown], /millrace list/],
    [5, ['monitor', unknown], /millrace list/],
    [5, ['cancel', 'ffffffff'], /millrace list/],
    [6, ['submit', '--queue', 'elsewhere', '--', 'true'], /elsewhere/],
  ] as const)('%i: %j', async (code, args, line) => {
    const done = await place.run(args)
    expect(done).toMatchObject({ code, stdout: '' })
    expect(done.stderr).toMatch(/^millrace: [^\n]+\n$/)
    expect(done.stderr).toMatch(line)
  })

  test('4: nobody listens there', async () => {
    const address = `http://127.0.0.1:${await closedPort()}`
    const done = await place.run(['list', '--server', address])
    expect(done).toMatchObject({ code: 4, stdout: '' })
    expect(done.stderr).toMatch(/^millrace: [^\n]+\n$/)
    expect(done.stderr).toContain(address)
  })
})
