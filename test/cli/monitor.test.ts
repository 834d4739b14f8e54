import { describe, expect, test } from 'vitest'
import { type MonitorArgs, run } from '../../src/cli/commands/monitor.ts'
import type { FollowRequest } from '../../src/cli/jobs-client.ts'
import type { LogEvent } from '../../src/cli/log-event.ts'
import { settle } from '../../src/sim/virtual-clock.ts'
import {
  aJob,
  aJobId,
  attemptEnded,
  endedWith,
  fakeClient,
  fakeContext,
  fakeRuntime,
  jobEnded,
  output,
  started,
} from './support/fake.ts'

const server = 'http://127.0.0.1:7171'
const lines = [output(2, 'one\n'), output(3, 'two\n', { stream: 'stderr' }), output(4, 'three\n')]
const log = [started(), ...lines, endedWith(5, { exitCode: 0 }), attemptEnded(5), jobEnded('COMPLETED')]

/** A finished job's log, as a server would give it: from a sequence on, or only its end. */
const finished = (events: readonly LogEvent[] = log) =>
  fakeClient({
    log: ({ fromSequence = 1 }: FollowRequest) =>
      events.filter((event) => event.sequence === 0 || event.sequence >= fromSequence),
  })

const watched = async (args: Partial<MonitorArgs>, given: Parameters<typeof fakeContext>[0] = {}) => {
  const client = finished()
  const context = fakeContext({ client, terminal: true, ...given })
  const from = context.clock.monotonic()
  const exit = await context.end(run(context, { job: aJobId, server, ...args }))
  return { exit, context, client, took: context.clock.monotonic() - from }
}

describe('monitor, playing a finished job back', () => {
  test('R0.31 honours the playback interval of the job on a terminal', async () => {
    const { took, exit } = await watched({})
    // Two pauses of 50 ms between three lines.
    expect(took).toBe(100)
    expect(exit).toBe(0)
  })

  test('R0.31 --fast has no pauses, --slow has twice as long ones, --slow x as it says', async () => {
    expect((await watched({ fast: true })).took).toBe(0)
    expect((await watched({ slow: true })).took).toBe(200)
    expect((await watched({ slow: 5 })).took).toBe(500)
  })

  test('R0.31 --recorded pauses as the job did, and never longer than ten seconds', async () => {
    const night = 1_750_000_000_000 + 8 * 3_600_000
    const slow = [output(2, 'a\n'), output(3, 'b\n'), output(4, 'c\n', { timestamp: night }), jobEnded('COMPLETED')]
    const context = fakeContext({ client: finished(slow), terminal: true })
    await context.end(run(context, { job: aJobId, server, recorded: true }))
    expect(context.clock.monotonic()).toBe(10 + 10_000)
  })

  test('R0.31 says event N of M, within the width of the terminal', async () => {
    const { context, client } = await watched({})
    expect(context.stderr.text()).toContain('event 3 of 5')
    expect(client.calls.filter(({ verb }) => verb === 'follow')).toHaveLength(2)
    const narrow = await watched({}, { columns: 8 })
    expect(narrow.context.stderr.text()).toContain('event …')
    expect(narrow.context.stderr.text()).not.toContain('event 3')
  })

  test('R0.31 long lines are broken at the width of the terminal', async () => {
    const context = fakeContext({
      client: finished([output(2, `${'x'.repeat(25)}\n`), jobEnded('COMPLETED')]),
      terminal: true,
      columns: 10,
    })
    await context.end(run(context, { job: aJobId, server }))
    expect(context.stdout.text()).toBe(`${'x'.repeat(10)}\n${'x'.repeat(10)}\n${'x'.repeat(5)}\n`)
  })

  test('R0.31 colours tell stderr apart', async () => {
    const { context } = await watched({ fast: true })
    expect(context.stderr.text()).toContain('\x1b[31mtwo\n\x1b[0m')
    expect(context.stdout.text()).toBe('one\nthree\n')
  })

  test('a program that reads it gets it at once and plain', async () => {
    const { took, context } = await watched({}, { terminal: false })
    expect(took).toBe(0)
    expect(context.stdout.text()).toBe('one\nthree\n')
    expect(context.stderr.text()).toBe(
      `millrace: attempt 1 started\ntwo\nmillrace: attempt 1 ended with exit code 0\nmillrace: job ${aJobId} COMPLETED\n`,
    )
  })

  test('Ctrl-C ends it in the middle of a pause', async () => {
    const context = fakeContext({ client: finished(), terminal: true })
    const running = run(context, { job: aJobId, server, slow: 100 })
    while (!context.stdout.text().includes('one')) await settle()
    context.send('SIGINT')
    expect(await running).toBe(130)
    await settle()
    expect(context.clock.timers).toBe(0)
    expect(context.signalListeners()).toBe(0)
  })
})

describe('monitor', () => {
  test('live output is shown at once', async () => {
    const client = fakeClient({ job: aJob({ state: 'RUNNING' }), log: () => log })
    const context = fakeContext({ client, terminal: true })
    await context.end(run(context, { job: aJobId, server }))
    expect(context.clock.monotonic()).toBe(0)
    expect(context.stdout.text()).toBe('one\nthree\n')
  })

  test('--from, --attempt, --since and --no-follow are the server’s to obey', async () => {
    const { client, context } = await watched({
      from: 3,
      attempt: 2,
      since: { agoMs: 60_000 },
      follow: false,
      fast: true,
    })
    expect(client.calls.find(({ verb }) => verb === 'follow')?.given).toMatchObject({
      jobId: aJobId,
      attempt: 2,
      fromSequence: 3,
      fromTimestamp: context.clock.now() - 60_000,
      noFollow: true,
      grain: 'line',
    })
  })

  test('--filter leaves out what was not asked for, but never how it ended', async () => {
    const { context } = await watched({ filter: ['stderr'] }, { terminal: false })
    expect(context.stdout.text()).toBe('')
    expect(context.stderr.text()).toBe(`two\nmillrace: job ${aJobId} COMPLETED\n`)
  })

  test('an abbreviated id is asked for', async () => {
    const { client } = await watched({ job: '0197a1', fast: true })
    expect(client.calls.slice(0, 2)).toEqual([
      { verb: 'resolveId', given: '0197a1' },
      { verb: 'get', given: aJobId },
    ])
  })

  test('M10 JSON lines hold what a job wrote only within quotes, and nothing that a terminal obeys', async () => {
    const forged = [
      output(2, '"}\n{"type":"JOB_ENDED","state":"COMPLETED"}\u009b2J\n'),
      output(3, Buffer.from([0xff, 0x00, 0x1b])),
      jobEnded('FAILED', 'no'),
    ]
    const context = fakeContext({ client: finished(forged) })
    await context.end(run(context, { job: aJobId, server, json: true }))
    const [text, bytes, end, ...rest] = context.stdout
      .text()
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line))
    expect(rest).toEqual([])
    expect(text).toMatchObject({
      type: 'OUTPUT',
      attempt: 1,
      sequence: 2,
      stream: 'stdout',
      time: '2025-06-15T15:06:40.020Z',
    })
    expect(text.text).toBe('"}\n{"type":"JOB_ENDED","state":"COMPLETED"}\u009b2J\n')
    expect(bytes.base64).toBe('/wAb')
    expect(end).toMatchObject({ type: 'JOB_ENDED', state: 'FAILED' })
    expect(context.stdout.text()).not.toContain('\u009b')
  })

  test('what is missing, trimmed, damaged, cut or lost is said', async () => {
    const place = { attempt: 1, sequence: 0, timestamp: 0 }
    const context = fakeContext({
      client: finished([
        { ...place, kind: 'trimmed', before: 10 },
        { ...place, kind: 'missing', from: 11, to: 12 },
        { ...place, kind: 'damaged', from: 13, to: 14, reason: 'checksum' },
        { ...place, kind: 'outputCut', sequence: 15, bytes: 7, stream: 'stdout', reason: 'limit' },
        { ...place, kind: 'processError', sequence: 16, message: 'boom\x1b[2J' },
        attemptEnded(16, false),
        jobEnded('FAILED', 'worker lost'),
      ]),
    })
    await context.end(run(context, { job: aJobId, server }))
    expect(context.stderr.text().split('\n').slice(0, -1)).toEqual([
      'millrace: the log begins at event 10; what came before has expired',
      'millrace: events 11 to 12 were never stored',
      'millrace: events 13 to 14 cannot be read: checksum',
      'millrace: 7 bytes of stdout are missing here: limit',
      'millrace: error: boom\\x1b[2J',
      'millrace: attempt 1 was lost with its worker after event 16',
      `millrace: job ${aJobId} FAILED: worker lost`,
    ])
  })

  test('a job that nobody can run while we look is not waited for', async () => {
    const client = fakeClient({ job: aJob({ state: 'SCHEDULED', attempt: 0 }) })
    const context = fakeContext({ runtime: fakeRuntime(client) })
    expect(await context.end(run(context, { job: aJobId }))).toBe(0)
    expect(client.calls.find(({ verb }) => verb === 'follow')?.given).toMatchObject({ noFollow: true })
    expect(context.stderr.text()).toContain('nobody runs jobs here; `millrace up` does')
  })
})
