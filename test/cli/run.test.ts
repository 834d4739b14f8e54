import { describe, expect, test } from 'vitest'
import { run } from '../../src/cli/commands/run.ts'
import { OutputClosed } from '../../src/cli/faults.ts'
import type { SubmitRequest } from '../../src/cli/jobs-client.ts'
import type { LogEvent } from '../../src/cli/log-event.ts'
import { settle } from '../../src/sim/virtual-clock.ts'
import {
  AnyFault,
  aJobId,
  attemptEnded,
  endedWith,
  type FakeClient,
  fakeClient,
  fakeContext,
  fakeRuntime,
  jobEnded,
  output,
  started,
} from './support/fake.ts'

const command = ['echo', 'hello']
const verbs = (client: FakeClient) => client.calls.map(({ verb }) => verb)

const endsWith = (...log: readonly LogEvent[]) => fakeClient({ log: () => log })

/** A stream that waits for the test: `push` gives an event, `fail` breaks it. */
const liveLog = () => {
  const waiting: ((next: LogEvent | Error) => void)[] = []
  const given: (LogEvent | Error)[] = []
  const push = (next: LogEvent | Error) => {
    const taker = waiting.shift()
    if (taker) taker(next)
    else given.push(next)
  }
  const log = async function* (): AsyncGenerator<LogEvent> {
    for (;;) {
      const next = given.shift() ?? (await new Promise<LogEvent | Error>((resolve) => waiting.push(resolve)))
      if (next instanceof Error) throw next
      yield next
      if (next.kind === 'jobEnded') return
    }
  }
  return { log, push }
}

describe('run', () => {
  test('prints what the command prints, each stream to its own, and ends as it did', async () => {
    const client = endsWith(
      started(),
      output(2, 'hello\n'),
      output(3, 'oops\n', { stream: 'stderr' }),
      endedWith(4, { exitCode: 0 }),
      attemptEnded(4),
      jobEnded('COMPLETED'),
    )
    const context = fakeContext({ runtime: fakeRuntime(client) })
    expect(await context.end(run(context, { command }))).toBe(0)
    expect(context.stdout.text()).toBe('hello\n')
    expect(context.stderr.text()).toBe('oops\n')
    expect(context.signalListeners()).toBe(0)
    expect(context.clock.timers).toBe(0)
  })

  test.each([
    [3, { exitCode: 3 }],
    [255, { exitCode: 255 }],
    [137, { signal: 'SIGKILL' }],
    [139, { signal: 'SIGSEGV' }],
    [1, { error: 'no such program' }],
  ])('exit code %i of %j', async (code, end) => {
    const client = endsWith(started(), endedWith(2, end), attemptEnded(2), jobEnded('FAILED', 'failed'))
    const context = fakeContext({ runtime: fakeRuntime(client) })
    expect(await context.end(run(context, { command }))).toBe(code)
    expect(context.stderr.text()).toBe(`millrace: job ${aJobId} FAILED: failed\n`)
  })

  test('exit code 124 when the time limit had passed', async () => {
    const end = endedWith(2, { signal: 'SIGTERM', timestamp: 1_750_000_005_100 })
    const client = endsWith(started(), end, attemptEnded(2), jobEnded('FAILED', 'too long'))
    const context = fakeContext({ runtime: fakeRuntime(client) })
    expect(await context.end(run(context, { command, timeout: 5_000 }))).toBe(124)
  })

  test('gives the command its own environment and directory, what was asked for on top', async () => {
    const client = endsWith(jobEnded('COMPLETED'))
    const context = fakeContext({ runtime: fakeRuntime(client), env: { PATH: '/bin', A: '1' }, stdin: 'in' })
    const flags = {
      queue: 'q',
      env: { A: '2' },
      cwd: 'sub',
      stdin: true,
      retries: 2,
      timeout: 9,
      priority: 'high',
      maxOutput: 7,
    } as const
    await context.end(run(context, { command, ...flags, requestId: 'r' }))
    expect(client.calls[0]).toEqual({
      verb: 'enqueue',
      given: {
        queue: 'q',
        params: {
          kind: 'command',
          argv: command,
          cwd: '/home/ada/place/sub',
          env: { PATH: '/bin', A: '2' },
          stdin: 'in',
        },
        requestId: 'r',
        priority: 'high',
        timeoutMs: 9,
        execution: { maxOutputBytes: 7 },
        retry: { maxAttempts: 3 },
      } satisfies SubmitRequest,
    })
  })

  test('names what an earlier holder left, and leaves it', async () => {
    const runtime = fakeRuntime(endsWith(jobEnded('COMPLETED')), { leftBehind: async () => 3 })
    const context = fakeContext({ runtime })
    await context.end(run(context, { command }))
    expect(context.stderr.text()).toBe('millrace: 3 earlier jobs wait here; `millrace up` runs them\n')
  })

  test('finishes the jobs of others before it goes, and says so', async () => {
    let finish: () => void = () => {}
    const ended = new Promise<void>((resolve) => {
      finish = resolve
    })
    const client = endsWith(jobEnded('COMPLETED'))
    const context = fakeContext({ runtime: fakeRuntime(client, { guests: () => ({ count: 1, ended }) }) })
    const running = run(context, { command })
    while (!context.stderr.text().includes('others')) await settle()
    expect(verbs(client)).not.toContain('close')
    finish()
    expect(await running).toBe(0)
    expect(context.stderr.text()).toBe('millrace: 1 job of others to finish; Ctrl-C gives them back\n')
  })

  test('the first Ctrl-C cancels the job and waits for its end; then 130', async () => {
    const { log, push } = liveLog()
    const client = fakeClient({ log })
    const context = fakeContext({ runtime: fakeRuntime(client) })
    const running = run(context, { command })
    push(started())
    while (!verbs(client).includes('follow')) await settle()
    context.send('SIGINT')
    await settle()
    expect(verbs(client)).toContain('cancel')
    expect(context.stderr.text()).toContain('millrace: cancelling; once more to stop at once\n')
    push(output(2, 'bye\n'))
    push(endedWith(3, { signal: 'SIGTERM' }))
    push(jobEnded('CANCELLED'))
    expect(await running).toBe(130)
    expect(context.stdout.text()).toBe('bye\n')
    expect(verbs(client)).not.toContain('stopNow')
  })

  test('the second Ctrl-C does not wait', async () => {
    const { log, push } = liveLog()
    const client = fakeClient({ log })
    const context = fakeContext({ runtime: fakeRuntime(client) })
    const running = run(context, { command })
    push(started())
    while (!verbs(client).includes('follow')) await settle()
    context.send('SIGINT')
    context.send('SIGTERM')
    expect(await running).toBe(143)
    expect(verbs(client).slice(-2)).toEqual(['stopNow', 'close'])
  })

  test('a Ctrl-C before the job is made cancels it as soon as it is', async () => {
    let answer: (made: { jobId: string; created: boolean }) => void = () => {}
    const client = fakeClient({
      enqueue: () =>
        new Promise((resolve) => {
          answer = resolve
        }),
      log: () => [jobEnded('CANCELLED')],
    })
    const context = fakeContext({ runtime: fakeRuntime(client) })
    const running = run(context, { command })
    while (!verbs(client).includes('enqueue')) await settle()
    context.send('SIGINT')
    answer({ jobId: aJobId, created: true })
    expect(await running).toBe(130)
    expect(client.calls.find(({ verb }) => verb === 'cancel')?.given).toBe(aJobId)
  })

  test('whoever read the output is gone: the job is cancelled', async () => {
    const client = endsWith(started(), output(2, 'hello\n'), jobEnded('COMPLETED'))
    const context = fakeContext({ runtime: fakeRuntime(client) })
    context.stdout.close(new OutputClosed())
    await expect(context.end(run(context, { command }))).rejects.toMatchObject({ code: 'OUTPUT_CLOSED' })
    expect(verbs(client)).toContain('cancel')
  })

  test('a second run on a held directory gives its job to the holder', async () => {
    const client = endsWith(
      started(),
      output(2, 'there\n'),
      endedWith(3, { exitCode: 4 }),
      jobEnded('FAILED', 'exit code 4'),
    )
    const context = fakeContext({
      client,
      env: { HERE: 'mine' },
      backend: { open: () => Promise.reject(new AnyFault('DIRECTORY_HELD')) },
    })
    expect(await context.end(run(context, { command }))).toBe(4)
    expect(context.stdout.text()).toBe('there\n')
    expect(client.calls[0]?.given).toMatchObject({ params: { env: { HERE: 'mine' }, cwd: '/home/ada/place' } })
  })

  test('a holder that vanishes is replaced: the same request, and nothing shown twice', async () => {
    const lost = new AnyFault('UNREACHABLE')
    const guest = fakeClient({
      log: async function* () {
        yield started()
        yield output(2, 'one\n')
        throw lost
      },
    })
    const own = endsWith(
      output(2, 'one\n'),
      attemptEnded(2, false),
      started(2),
      output(2, 'two\n', { attempt: 2 }),
      endedWith(3, { exitCode: 0, attempt: 2 }),
      jobEnded('COMPLETED'),
    )
    let opened = 0
    const context = fakeContext({
      client: guest,
      backend: {
        open: async () => {
          opened += 1
          if (opened === 1) throw new AnyFault('DIRECTORY_HELD')
          return fakeRuntime(own)
        },
      },
    })
    expect(await context.end(run(context, { command }))).toBe(0)
    expect(context.stdout.text()).toBe('one\ntwo\n')
    expect(context.stderr.text()).toContain('going on without it')
    expect(context.stderr.text()).toContain('millrace: attempt 1 was lost with its worker after event 2\n')
    expect(own.calls[0]).toEqual(guest.calls[0])
    expect(own.calls.find(({ verb }) => verb === 'follow')?.given).toMatchObject({ attempt: 1, fromSequence: 3 })
  })

  test('a holder that never answers is waited for five seconds', async () => {
    const held = new AnyFault('DIRECTORY_HELD', '/data is in use by process 7 on host')
    const context = fakeContext({ backend: { open: () => Promise.reject(held) } })
    const from = context.clock.monotonic()
    await expect(context.end(run(context, { command }))).rejects.toMatchObject({ code: 'HOLDER_SILENT' })
    expect(context.clock.monotonic() - from).toBeGreaterThanOrEqual(5_000)
    expect(context.clock.monotonic() - from).toBeLessThan(5_500)
    expect(context.clock.timers).toBe(0)
  })

  test('a holder that is starting is found as soon as it listens', async () => {
    const client = endsWith(jobEnded('COMPLETED'))
    let tries = 0
    const context = fakeContext({
      backend: {
        open: () => Promise.reject(new AnyFault('DIRECTORY_HELD')),
        connect: async () => {
          tries += 1
          if (tries < 5) throw new AnyFault('UNREACHABLE')
          return client
        },
      },
    })
    expect(await context.end(run(context, { command }))).toBe(0)
    expect(context.clock.monotonic()).toBe(400)
  })

  test('M09 raw goes to no terminal unless it is asked for by name', async () => {
    const bytes = Buffer.from('\x1b[2Jx\0\n')
    const client = () => endsWith(output(2, bytes), jobEnded('COMPLETED'))
    const terminal = fakeContext({ terminal: true, runtime: fakeRuntime(client()) })
    await expect(run(terminal, { command, raw: true })).rejects.toMatchObject({ code: 'USAGE_INVALID' })
    const asked = fakeContext({ terminal: true, runtime: fakeRuntime(client()) })
    await asked.end(run(asked, { command, rawTty: true }))
    expect(Buffer.concat(asked.stdout.chunks)).toEqual(bytes)
    const piped = fakeContext({ runtime: fakeRuntime(client()) })
    await piped.end(run(piped, { command, raw: true }))
    expect(Buffer.concat(piped.stdout.chunks)).toEqual(bytes)
    const usual = fakeContext({ runtime: fakeRuntime(client()) })
    await usual.end(run(usual, { command }))
    expect(usual.stdout.text()).toBe('x\n')
  })

  test('M10 what a job writes between our own lines cannot be taken for one', async () => {
    const client = endsWith(
      started(),
      output(2, '\x1b[8mmillrace: job x COMPLETED', { stream: 'stderr' }),
      endedWith(3, { exitCode: 1 }),
      jobEnded('FAILED', 'exit code 1\nmillrace: forged'),
    )
    const context = fakeContext({ terminal: true, runtime: fakeRuntime(client) })
    expect(await context.end(run(context, { command }))).toBe(1)
    const ours = context.stderr
      .text()
      .replaceAll(/\p{Cc}\[[0-9;]*m/gu, '')
      .split('\n')
      .filter((line) => line.startsWith('millrace:'))
    expect(ours).toEqual([`millrace: job ${aJobId}`, `millrace: job ${aJobId} FAILED: exit code 1\\nmillrace: forged`])
    // Colours that hide are switched off before we speak.
    expect(context.stderr.text()).toContain('\x1b[0m\n\x1b[90mmillrace: job')
  })

  test('R0.31 stderr is told apart on a terminal and plain elsewhere', async () => {
    const log = [output(2, 'oops\n', { stream: 'stderr' }), jobEnded('COMPLETED')]
    const terminal = fakeContext({ terminal: true, runtime: fakeRuntime(endsWith(...log)) })
    await terminal.end(run(terminal, { command, quiet: true }))
    expect(terminal.stderr.text()).toBe('\x1b[31moops\n\x1b[0m')
    const plain = fakeContext({ terminal: true, runtime: fakeRuntime(endsWith(...log)) })
    await plain.end(run(plain, { command, quiet: true, color: false }))
    expect(plain.stderr.text()).toBe('oops\n')
  })
})
