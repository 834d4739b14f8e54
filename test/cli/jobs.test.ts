import { describe, expect, test } from 'vitest'
import { run as cancel } from '../../src/cli/commands/cancel.ts'
import { run as config } from '../../src/cli/commands/config.ts'
import { run as dead } from '../../src/cli/commands/dead.ts'
import { run as list } from '../../src/cli/commands/list.ts'
import { run as provision } from '../../src/cli/commands/provision.ts'
import { run as retry } from '../../src/cli/commands/retry.ts'
import { run as show } from '../../src/cli/commands/show.ts'
import { run as submit } from '../../src/cli/commands/submit.ts'
import type { Provisioning, ProvisionStep } from '../../src/cli/context.ts'
import { settle } from '../../src/sim/virtual-clock.ts'
import {
  AnyFault,
  aJob,
  aJobId,
  endedWith,
  fakeClient,
  fakeContext,
  fakeRuntime,
  jobEnded,
  output,
  started,
} from './support/fake.ts'

const server = 'http://127.0.0.1:7171'
const otherId = '0197a1b2-c3d4-7000-8000-000000000002'
const params = { kind: 'command', argv: ['true'] } as const

describe('submit', () => {
  test('prints the id of the job and nothing else, and gives no environment of ours away', async () => {
    const client = fakeClient()
    const context = fakeContext({ client, env: { SECRET: 'hunter2' } })
    expect(await submit(context, { server, command: ['true'], delay: 60_000 })).toBe(0)
    expect(context.stdout.text()).toBe(`${aJobId}\n`)
    expect(context.stderr.text()).toBe('')
    expect(client.calls[0]?.given).toMatchObject({
      params: { ...params, cwd: '/home/ada/place' },
      delayMs: 60_000,
      requestId: expect.stringMatching(/^[0-9a-f]{32}$/),
    })
    expect(JSON.stringify(client.calls)).not.toContain('hunter2')
  })

  test('a handler gets its input', async () => {
    const client = fakeClient()
    const context = fakeContext({ client })
    await submit(context, { server, command: [], handler: 'greet', input: '{"name":"Ada"}', json: true })
    expect(client.calls[0]?.given).toMatchObject({
      params: { kind: 'handler', name: 'greet', input: { name: 'Ada' } },
    })
    expect(JSON.parse(context.stdout.text())).toEqual({ jobId: aJobId, created: true })
  })

  test.each([
    [{ command: [] }, 'there is no command'],
    [{ command: ['a'], handler: 'b' }, 'not both'],
    [{ command: [], handler: 'b', input: '{secret' }, '--input takes JSON'],
    [{ command: [], handler: 'b', cwd: '/' }, '--input'],
    [{ command: ['a'], input: '1' }, '--stdin'],
    [{ command: ['a\0b'] }, 'NUL'],
  ])('%j is refused', async (args, message) => {
    const refused = submit(fakeContext({ client: fakeClient() }), { server, ...args })
    await expect(refused).rejects.toThrow(message)
    await expect(refused).rejects.not.toThrow('secret')
  })

  test('--wait ends as the command did and prints no output, --follow prints it', async () => {
    const log = () => [
      started(),
      output(2, 'hello\n'),
      endedWith(3, { exitCode: 9 }),
      jobEnded('FAILED', 'exit code 9'),
    ]
    const waiting = fakeContext({ client: fakeClient({ log }) })
    expect(await waiting.end(submit(waiting, { server, command: ['x'], wait: true }))).toBe(9)
    expect(waiting.stdout.text()).toBe('')
    const following = fakeContext({ client: fakeClient({ log }) })
    expect(await following.end(submit(following, { server, command: ['x'], follow: true }))).toBe(9)
    expect(following.stdout.text()).toBe('hello\n')
  })

  test('Ctrl-C ends the waiting and not the job', async () => {
    const client = fakeClient({
      log: async function* () {
        yield started()
        await new Promise(() => {})
      },
    })
    const context = fakeContext({ client })
    const waiting = submit(context, { server, command: ['x'], wait: true })
    while (!client.calls.some(({ verb }) => verb === 'follow')) await settle()
    context.send('SIGINT')
    expect(await waiting).toBe(130)
    expect(client.calls.map(({ verb }) => verb)).not.toContain('cancel')
    expect(context.stderr.text()).toContain(`the job goes on; \`millrace monitor ${aJobId}\` shows it`)
  })

  test('without anybody who runs jobs it is stored and said, and waiting for it is refused', async () => {
    const context = fakeContext({ runtime: fakeRuntime(fakeClient()) })
    expect(await context.end(submit(context, { command: ['x'] }))).toBe(0)
    expect(context.stderr.text()).toBe('millrace: stored; `millrace up` runs it\n')
    const client = fakeClient()
    const waiting = fakeContext({ runtime: fakeRuntime(client) })
    await expect(waiting.end(submit(waiting, { command: ['x'], wait: true }))).rejects.toThrow('millrace up')
    expect(client.calls.map(({ verb }) => verb)).toEqual(['close'])
  })
})

describe('list', () => {
  test('asks for as many pages as it takes, and shows a table', async () => {
    const pages = [
      { jobs: [], cursor: 'a' },
      { jobs: [aJob()], cursor: 'b' },
      { jobs: [aJob({ id: otherId, state: 'RUNNING' })] },
    ]
    const client = fakeClient({ list: async () => pages.shift() ?? { jobs: [] } })
    const context = fakeContext({ client })
    const args = { server, queue: 'q', state: 'FAILED', since: { agoMs: 1_000 }, limit: 5, ascending: true } as const
    expect(await list(context, args)).toBe(0)
    expect(context.stdout.text()).toBe(
      [
        'JOB                                   STATE      QUEUE    TRY  AGE  WHAT',
        `${aJobId}  COMPLETED  default  1    0s   make all`,
        `${otherId}  RUNNING    default  1    0s   make all`,
        '',
      ].join('\n'),
    )
    expect(client.calls.filter(({ verb }) => verb === 'list').at(-1)?.given).toEqual({
      queue: 'q',
      state: 'FAILED',
      from: context.clock.now() - 1_000,
      ascending: true,
      limit: 4,
      cursor: 'b',
    })
  })

  test('fits into the terminal', async () => {
    const job = aJob({ params: { kind: 'command', argv: ['x'.repeat(200)] } })
    const context = fakeContext({ client: fakeClient({ job }), terminal: true, columns: 90 })
    await list(context, { server, color: false })
    expect(
      Math.max(
        ...context.stdout
          .text()
          .split('\n')
          .map(({ length }) => length),
      ),
    ).toBe(90)
  })

  test('M10 what a job is called cannot draw on the table', async () => {
    const job = aJob({ params: { kind: 'command', argv: ['a\x1b[2J\nmillrace: forged\u202e\u009b'] } })
    const context = fakeContext({ client: fakeClient({ job }) })
    await list(context, { server })
    expect(context.stdout.text().split('\n')).toHaveLength(3)
    expect(context.stdout.text()).toContain("'a\\x1b[2J\\nmillrace: forged\\u202e\\x9b'")
  })

  test('--watch shows what changes, and ends with Ctrl-C', async () => {
    let state: 'RUNNING' | 'COMPLETED' = 'RUNNING'
    const client = fakeClient({ list: async () => ({ jobs: [aJob({ state })] }) })
    const context = fakeContext({ client })
    const watching = list(context, { server, watch: true, json: true })
    await context.clock.advance(2_000)
    state = 'COMPLETED'
    await context.clock.advance(4_000)
    context.send('SIGINT')
    expect(await watching).toBe(130)
    const states = context.stdout
      .text()
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line).state)
    expect(states).toEqual(['RUNNING', 'COMPLETED'])
    expect(context.clock.timers).toBe(0)
  })

  test('--watch draws the table anew on a terminal', async () => {
    const context = fakeContext({ client: fakeClient(), terminal: true, columns: 100 })
    const watching = list(context, { server, watch: true })
    await context.clock.advance(2_000)
    context.send('SIGINT')
    await watching
    expect(context.stdout.text().split('\x1b[2A\x1b[J')).toHaveLength(2)
  })
})

const secrets = aJob({
  state: 'FAILED',
  error: 'exit code 1',
  params: {
    kind: 'command',
    argv: [
      'deploy',
      '--password=hunter2-a',
      '--api-token',
      'hunter2-b',
      'API_KEY=hunter2-c',
      'https://ada:hunter2-d@example.org/x',
      'Authorization: Bearer hunter2-e',
      'x-hunter2-f-y',
      '--verbose',
    ],
    env: { DB_PASSWORD: 'hunter2-f', PLAIN: 'hunter2-g' },
    stdin: 'hunter2-h',
  },
})

describe('show', () => {
  test('says everything that is known of a job', async () => {
    const context = fakeContext({ client: fakeClient({ job: aJob({ timeoutMs: 5_000, result: { exitCode: 0 } }) }) })
    expect(await show(context, { server, job: aJobId })).toBe(0)
    const text = context.stdout.text()
    for (const fact of [
      aJobId,
      'COMPLETED',
      'make all',
      'priority normal',
      '5000 ms',
      '2025-06-15T15:06:40.000Z',
      '{"exitCode":0}',
    ])
      expect(text).toContain(fact)
  })

  test.each([true, false])('M13 shows no secret of arguments, environment or input (json: %s)', async (json) => {
    const context = fakeContext({ client: fakeClient({ job: secrets }) })
    await show(context, { server, job: aJobId, json })
    const text = context.stdout.text()
    expect(text).not.toContain('hunter2')
    for (const name of ['deploy', '--verbose', 'DB_PASSWORD', 'PLAIN', 'ada', '--api-token'])
      expect(text).toContain(name)
    const input = { apiToken: 'hunter2', list: [{ password: 'hunter2' }], name: 'Ada' }
    const handler = fakeContext({
      client: fakeClient({ job: aJob({ params: { kind: 'handler', name: 'h', input } }) }),
    })
    await show(handler, { server, job: aJobId, json })
    expect(handler.stdout.text()).not.toContain('hunter2')
    expect(handler.stdout.text()).toContain('Ada')
  })

  test('M13 lists show no secret either', async () => {
    for (const json of [true, false]) {
      const context = fakeContext({ client: fakeClient({ job: secrets }) })
      await list(context, { server, json })
      await dead(context, { server, json, action: 'list' })
      expect(context.stdout.text()).not.toContain('hunter2')
    }
  })
})

describe('cancel, retry and dead', () => {
  test('cancel tells of each job what became of it, and 6 if one had ended before', async () => {
    const answers = [
      { state: 'RUNNING', requested: true },
      { state: 'CANCELLED', requested: false },
      { state: 'COMPLETED', requested: false },
    ] as const
    let asked = 0
    const client = fakeClient({ cancel: async () => answers[asked++] as (typeof answers)[number] })
    const context = fakeContext({ client })
    expect(await cancel(context, { server, jobs: [aJobId, aJobId, aJobId] })).toBe(6)
    expect(context.stdout.text()).toBe(
      `${aJobId} was told to stop\n${aJobId} is cancelled\n${aJobId} had ended before: COMPLETED\n`,
    )
  })

  test('retry names the run that it saw', async () => {
    const client = fakeClient({ job: aJob({ state: 'FAILED', run: 4 }) })
    const context = fakeContext({ client })
    expect(await retry(context, { server, jobs: ['0197'] })).toBe(0)
    expect(client.calls.find(({ verb }) => verb === 'retry')?.given).toEqual([aJobId, 4])
    expect(context.stdout.text()).toBe(`${aJobId} starts again, run 5\n`)
  })

  test('dead list shows failed jobs and unreadable messages of every queue', async () => {
    const client = fakeClient({
      job: aJob({ state: 'FAILED' }),
      deadLetters: async (queue) => (queue === 'default' ? [{ body: '{\n', reason: 'no JSON' }] : []),
    })
    const context = fakeContext({ client })
    await dead(context, { server, action: 'list' })
    expect(client.calls[0]?.given).toMatchObject({ state: 'FAILED' })
    expect(context.stdout.text()).toContain('unreadable message in default: no JSON: {\\n\n')
  })

  test('dead redrive starts what was named or all, and goes on where one is refused', async () => {
    const jobs = [aJob({ state: 'FAILED' }), aJob({ id: otherId, state: 'FAILED' })]
    const client = fakeClient({
      list: async () => ({ jobs }),
      retry: async (jobId) => {
        if (jobId === aJobId) throw new AnyFault('JOB_NOT_READY', 'it runs')
        return { run: 2 }
      },
    })
    const context = fakeContext({ client })
    expect(await dead(context, { server, action: 'redrive', all: true })).toBe(6)
    expect(context.stdout.text()).toBe(`${aJobId} was left: it runs\n${otherId} starts again, run 2\n`)
    await expect(dead(context, { server, action: 'redrive' })).rejects.toThrow('--all')
    await expect(dead(context, { server, action: 'redrive', all: true, jobs: [aJobId] })).rejects.toThrow('not both')
  })
})

describe('provision', () => {
  const steps: readonly ProvisionStep[] = [
    { resource: 'table millrace_jobs', action: 'create' },
    { resource: 'queue millrace-default', action: 'keep' },
  ]
  const provisioning = (): Provisioning & { applied: number } => {
    const given = {
      applied: 0,
      plan: async () => steps,
      apply: async (done: (step: ProvisionStep) => void) => {
        given.applied += 1
        for (const step of steps) done(step)
      },
      template: () => '{"Resources":{}}',
    }
    return given
  }

  test('does it, only says it, or prints it as a template', async () => {
    const given = provisioning()
    const told = async (args: object) => {
      const context = fakeContext({ provisioning: given })
      expect(await provision(context, { profile: 'aws', ...args })).toBe(0)
      return context.stdout.text()
    }
    expect(await told({ dryRun: true })).toBe('table millrace_jobs would be created\nqueue millrace-default is there\n')
    expect(await told({ cloudformation: true })).toBe('{"Resources":{}}\n')
    expect(given.applied).toBe(0)
    expect(await told({})).toBe('table millrace_jobs created\nqueue millrace-default is there\n')
    expect(given.applied).toBe(1)
  })

  test('is for the cloud', async () => {
    await expect(provision(fakeContext(), {})).rejects.toThrow('--profile aws')
  })
})

describe('config', () => {
  const yaml = `signing:\n  keys: [{ id: one, secret: ${'A'.repeat(43)}= }]\naws:\n  credentials: { accessKeyId: AKIA, secretAccessKey: hunter2 }\njobs: { queues: [a, b] }\n`
  const files = { '/home/ada/place/millrace.yaml': yaml }

  test('M13 print shows every value with where it comes from, and no secret', async () => {
    const context = fakeContext({ files, env: { MILLRACE_JOBS__SWEEP_INTERVAL_MS: '1000' } })
    expect(await config(context, { action: 'print', set: [{ key: 'jobs.outboxDelayMs', text: '2000' }] })).toBe(0)
    const lines = context.stdout.text().split('\n')
    expect(lines).toContain('profile = "embedded"  # default')
    expect(lines).toContain('jobs.queues = ["a","b"]  # /home/ada/place/millrace.yaml:5:17')
    expect(lines).toContain('jobs.sweepIntervalMs = 1000  # variable MILLRACE_JOBS__SWEEP_INTERVAL_MS')
    expect(lines).toContain('jobs.outboxDelayMs = 2000  # flag --set')
    expect(lines).toContain(
      'embedded.directory = "/home/ada/.local/share/millrace"  # the usual place on this platform',
    )
    expect(context.stdout.text()).not.toMatch(/hunter2|AAAA|AKIA/)
    expect(context.stdout.text()).toContain('‹hidden›')
  })

  test('check is quiet about what is good and says all that is wrong, with 3', async () => {
    const good = fakeContext({ files })
    expect(await config(good, { action: 'check' })).toBe(0)
    expect(good.stdout.text()).toBe('the configuration is good (/home/ada/place/millrace.yaml)\n')
    const bad = fakeContext({ files: { '/other.yaml': 'jobs: { retentionMs: 1, x: 2 }' } })
    expect(await config(bad, { action: 'check', config: '/other.yaml' })).toBe(3)
    expect(bad.stdout.text().split('\n')).toEqual([
      expect.stringMatching(/^\/other\.yaml:1:22: jobs\.retentionMs = 1: .*60000/),
      '/other.yaml:1:28: jobs.x: there is no such option',
      '',
    ])
  })

  test('the file: the one that was named, then this directory, then the usual place', async () => {
    const usual = '/home/ada/.config/millrace/millrace.yaml'
    const used = async (given: Parameters<typeof fakeContext>[0], flags = {}) => {
      const context = fakeContext(given)
      await config(context, { action: 'check', json: true, ...flags })
      return JSON.parse(context.stdout.text()).file
    }
    const all = { ...files, [usual]: '', '/a.yaml': '', '/b.yaml': '' }
    expect(await used({ files: all, env: { MILLRACE_CONFIG: '/a.yaml' } }, { config: '/b.yaml' })).toBe('/b.yaml')
    expect(await used({ files: all, env: { MILLRACE_CONFIG: '/a.yaml' } })).toBe('/a.yaml')
    expect(await used({ files: all })).toBe('/home/ada/place/millrace.yaml')
    expect(await used({ files: { [usual]: '' } })).toBe(usual)
    expect(await used({})).toBeUndefined()
    await expect(config(fakeContext(), { action: 'check', config: '/none.yaml' })).rejects.toThrow('/none.yaml')
  })
})
