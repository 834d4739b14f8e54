import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Command } from 'commander'
import { describe, expect, test } from 'vitest'
import { exitCodeOf, exitCodes, exitMeanings } from '../../src/cli/exit-codes.ts'
import { failureOf } from '../../src/cli/failure.ts'
import { UsageInvalid } from '../../src/cli/faults.ts'
import { main } from '../../src/cli/main.ts'
import { createProgram } from '../../src/cli/program.ts'
import { version } from '../../src/cli/version.ts'
import { ownVariables, usualVariables } from '../../src/config/environment.ts'
import { ConfigInvalid } from '../../src/config/faults.ts'
import { seedHints, seedNames } from '../../src/config/seed-names.ts'
import { AnyFault, fakeClient, fakeContext, fakeRuntime, jobEnded } from './support/fake.ts'

const checkout = join(import.meta.dirname, '../..')
const page = readFileSync(join(checkout, 'docs/cli.md'), 'utf8')

const ask = async (argv: readonly string[], context = fakeContext({ client: fakeClient() })) => {
  const printed: string[] = []
  const complaints: string[] = []
  const exit = await main({
    argv,
    env: {},
    columns: 80,
    print: (text) => void printed.push(text),
    complain: (text) => void complaints.push(text),
    context: async () => context,
  })
  return { exit, printed: printed.join(''), complaint: complaints.join(''), context }
}

/** What a command gets for some arguments. */
const parsed = async (...argv: readonly string[]) => {
  const given: { name: string; args: Record<string, unknown> }[] = []
  const perform = async (name: string, args: object) => void given.push({ name, args: { ...args } })
  const program = createProgram({ perform, env: { HERE: 'x' }, print: () => {}, columns: 80, version })
  await program.parseAsync([...argv], { from: 'user' })
  return given[0]
}

const commandsBelow = (command: Command, path: readonly string[] = []): readonly (readonly [string, Command])[] =>
  command.commands.flatMap((below) => {
    const name = [...path, below.name()]
    return [[name.join(' '), below] as const, ...commandsBelow(below, name)]
  })
const program = createProgram({ perform: async () => {}, env: {}, print: () => {}, columns: 80, version })
const commands = commandsBelow(program)

describe('parsing', () => {
  test('everything behind -- is the command’s, also what looks like a flag of ours', async () => {
    expect(await parsed('run', '--timeout', '1h30m', '--json', '--', 'grep', '-q', '--json', '--', 'x')).toEqual({
      name: 'run',
      args: { command: ['grep', '-q', '--json', '--', 'x'], timeout: 5_400_000, json: true },
    })
    expect((await parsed('run', '--', 'ls', '-q'))?.args).toEqual({ command: ['ls', '-q'] })
  })

  test('flags become values', async () => {
    const args = (
      await parsed('submit', '--env', 'A=b=c', '--env', 'HERE', '--delay', '90s', '--priority', 'HIGH', '--', 'x')
    )?.args
    expect(args).toMatchObject({ env: { A: 'b=c', HERE: 'x' }, delay: 90_000, priority: 'high' })
    const monitor = await parsed(
      'monitor',
      '0197A1B2',
      '--since',
      '5m',
      '--filter',
      'stderr,progress',
      '--slow',
      '--no-follow',
    )
    expect(monitor?.args).toEqual({
      job: '0197a1b2',
      since: { agoMs: 300_000 },
      filter: ['stderr', 'progress'],
      slow: true,
      follow: false,
    })
    expect((await parsed('monitor', '0197a1b2', '--slow', '3x'))?.args).toMatchObject({ slow: 3, follow: true })
    expect((await parsed('list', '--since', '2025-06-15', '--state', 'failed'))?.args).toEqual({
      since: { at: 1_749_945_600_000 },
      state: 'FAILED',
    })
    expect((await parsed('up', '--queue', 'a', '--queue', 'b', '--port', '0'))?.args).toEqual({
      queue: ['a', 'b'],
      port: 0,
    })
  })

  test('global flags stand before or behind the command', async () => {
    const global = ['--data-dir', '/d', '--server', 'http://h:1/', '--no-color', '-q', '--set', 'a.b=1']
    const expected = {
      dataDir: '/d',
      server: 'http://h:1',
      color: false,
      quiet: true,
      set: [{ key: 'a.b', text: '1' }],
    }
    expect((await parsed(...global, 'list'))?.args).toEqual(expected)
    expect((await parsed('list', ...global))?.args).toEqual(expected)
    expect((await parsed('list', '--color'))?.args).toEqual({ color: true })
  })

  test('dead and config have two ways each', async () => {
    expect((await parsed('dead', 'redrive', '0197a1b2', '0197a1b3'))?.args).toEqual({
      jobs: ['0197a1b2', '0197a1b3'],
      action: 'redrive',
    })
    expect((await parsed('config', 'print', '--json'))?.args).toEqual({ action: 'print', json: true })
  })
})

describe('what is wrong is one line, with what to do and exit code 2', () => {
  test.each([
    [['run', '--foo', '--', 'x'], "millrace: unknown option '--foo'. Run millrace run --help.\n"],
    [['run', '--tokne=hunter2', '--', 'x'], "millrace: unknown option '--tokne'. Run millrace run --help.\n"],
    [['lisst'], "millrace: unknown command 'lisst' (Did you mean list?). Run millrace --help.\n"],
    [[], 'millrace: a command is missing. Run millrace --help.\n'],
    [['dead'], 'millrace: a command is missing. Run millrace dead --help.\n'],
    [
      ['run', 'grep', '-q', 'x'],
      'millrace: put -- before the command, as in millrace run -- echo hello. Run millrace run --help.\n',
    ],
    [['list', '--limit', '0'], 'millrace: --limit takes a whole number from 1 to 100000. Run millrace list --help.\n'],
    [
      ['run', '--timeout', '5', '--', 'x'],
      'millrace: --timeout takes a duration such as 30s, 5m, 2h or 1h30m. Run millrace run --help.\n',
    ],
  ])('%j', async (argv, line) => {
    const { exit, complaint } = await ask(argv)
    expect(complaint).toBe(line)
    expect(exit).toBe(2)
  })

  test.each([
    '../../etc/passwd',
    '..%2f..%2fx',
    '0197\0a1b2',
    'abc',
    '/0197a1b2',
    '0197a1b2-../x',
    'x'.repeat(40),
    '-0197',
  ])('M08 %j is no job id and goes nowhere', async (id) => {
    const { exit, context } = await ask(['show', '--', id])
    expect(exit).toBe(2)
    expect(context.stdout.text()).toBe('')
  })

  test.each([
    [['run', '--cwd', 'a\0b', '--', 'x']],
    [['list', '--data-dir', 'a\0b']],
    [['list', '--config', 'a\0b']],
    [['list', '--token-file', 'a\0b']],
    [['run', '--env', 'A=b\0c', '--', 'x']],
  ])('M08 %j has a NUL in it and goes nowhere', async (argv) => {
    expect(await ask(argv)).toMatchObject({ exit: 2 })
  })

  test.each([
    [['submit', '--env', '1=hunter2', '--', 'x']],
    [['submit', '--handler', 'h', '--input', '{"password": hunter2}']],
    [['list', '--server', 'http://ada:hunter2@h:1']],
    [['list', '--set', 'signing.keys=[{"id":"a","secret":"hunter2"}]']],
  ])('M13 %j is refused without saying the secret again', async (argv) => {
    const { exit, complaint } = await ask(argv)
    expect([2, 3]).toContain(exit)
    expect(complaint).toMatch(/^millrace: /)
    expect(complaint).not.toContain('hunter2')
  })
})

describe('exit codes', () => {
  test.each([
    ['JOB_UNKNOWN', 5],
    ['ID_AMBIGUOUS', 5],
    ['UNREACHABLE', 4],
    ['CALL_UNAUTHENTICATED', 4],
    ['HOLDER_SILENT', 4],
    ['DIRECTORY_UNUSABLE', 3],
    ['JOB_NOT_READY', 6],
    ['SOMETHING_ELSE', 1],
    ['OUTPUT_CLOSED', 141],
  ])('%s is %i', async (code, expected) => {
    const context = fakeContext({ client: fakeClient({ get: () => Promise.reject(new AnyFault(code)) }) })
    const { exit, complaint } = await ask(['show', '0197a1b2', '--server', 'http://h:1'], context)
    expect(exit).toBe(expected)
    expect(complaint.split('\n')).toHaveLength(code === 'OUTPUT_CLOSED' ? 1 : 2)
  })

  test('a wrong configuration is 3, a bug is 125, a wrong flag is 2', () => {
    expect(failureOf(new ConfigInvalid('x')).exit).toBe(3)
    expect(failureOf(new UsageInvalid('x')).exit).toBe(2)
    expect(failureOf(new TypeError('x is not a function')).exit).toBe(125)
    expect(failureOf('a thrown text').exit).toBe(125)
  })

  test('M10 a message of others stays on its line and moves no cursor', () => {
    const { line } = failureOf(new AnyFault('JOB_UNKNOWN', 'no job \x1b[2J\nmillrace: forged'))
    expect(line).toBe('millrace: no job \\x1b[2J\\nmillrace: forged. `millrace list` shows the jobs there are.\n')
  })

  test('a command’s own exit code is ours', async () => {
    const end = { kind: 'processEnd', attempt: 1, sequence: 2, timestamp: 1, exitCode: 42 } as const
    const runtime = fakeRuntime(fakeClient({ log: () => [end, jobEnded('FAILED')] }))
    expect((await ask(['run', '--', 'x'], fakeContext({ runtime }))).exit).toBe(42)
  })

  test.each([
    [{ state: 'COMPLETED', exitCode: 0 }, 0],
    [{ state: 'COMPLETED' }, 0],
    [{ state: 'FAILED', exitCode: 77 }, 77],
    [{ state: 'FAILED', exitCode: 0 }, 1],
    [{ state: 'FAILED', exitCode: 3_221_225_477 }, 1],
    [{ state: 'FAILED' }, 1],
    [{ state: 'FAILED', signal: 'SIGKILL' }, 137],
    [{ state: 'FAILED', signal: 'SIGNONE' }, 1],
    [{ state: 'FAILED', signal: 'SIGTERM', ranMs: 5_000, timeoutMs: 5_000 }, 124],
    [{ state: 'FAILED', exitCode: 0, ranMs: 6_000, timeoutMs: 5_000 }, 124],
    [{ state: 'FAILED', signal: 'SIGTERM', ranMs: 4_999, timeoutMs: 5_000 }, 143],
    [{ state: 'CANCELLED' }, 7],
    [{ state: 'CANCELLED', signal: 'SIGTERM' }, 143],
  ])('%j is %i', (ending, code) => {
    expect(exitCodeOf(ending)).toBe(code)
  })
})

describe('docs/cli.md', () => {
  test('has every exit code as it is', () => {
    const rows = Object.entries(exitCodes).map(
      ([name, code]) => `| ${code} | ${exitMeanings[name as keyof typeof exitMeanings]} |`,
    )
    const table = page.split('\n').filter((line) => /^\| \d+ \|/.test(line))
    expect(table).toEqual(rows)
  })

  test('has every command with an example, and every flag', () => {
    const missing = commands.flatMap(([name, command]) => [
      ...(command.commands.length > 0 || new RegExp(`^millrace ${name}\\b`, 'm').test(page) ? [] : [name]),
      ...command.options.map(({ long }) => long ?? '').filter((flag) => !page.includes(flag)),
    ])
    expect(missing).toEqual([])
    expect(program.options.map(({ long }) => long ?? '').filter((flag) => !page.includes(`\`${flag}`))).toEqual([])
  })

  test('has every variable and every name that is understood', () => {
    for (const [name, meaning] of Object.entries(ownVariables)) expect(page).toContain(`| \`${name}\` | ${meaning} |`)
    for (const [name] of usualVariables) expect(page).toContain(`\`${name}\``)
    for (const [name, { to }] of Object.entries(seedNames)) expect(page).toMatch(new RegExp(`\`${name}\`.*\`${to}\``))
    for (const name of Object.keys(seedHints)) expect(page).toContain(`\`${name}\``)
  })
})

describe('help', () => {
  test('names every command, and every command says what it does', async () => {
    const { exit, printed } = await ask(['--help'])
    expect(exit).toBe(0)
    for (const [name] of commands.filter(([name]) => !name.includes(' ')))
      expect(printed).toMatch(new RegExp(`^  ${name}\\b`, 'm'))
    expect(Math.max(...printed.split('\n').map(({ length }) => length))).toBeLessThanOrEqual(80)
    for (const [name, command] of commands) {
      const help = await ask([...name.split(' '), '--help'])
      expect(help.exit).toBe(0)
      expect(help.printed).toContain(`Usage: millrace ${name}`)
      expect(command.description()).not.toBe('')
    }
  })

  test('the version is the one of package.json', async () => {
    const { version: published } = JSON.parse(readFileSync(join(checkout, 'package.json'), 'utf8'))
    expect((await ask(['--version'])).printed).toBe(`${published}\n`)
  })
})
