import { spawnSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

// The bundle as a user starts it: real processes, because what is loaded and how a process ends is the point.

const checkout = join(import.meta.dirname, '../..')
const bin = join(checkout, 'dist/bin/millrace.js')
let home = ''

beforeAll(() => {
  home = mkdtempSync(join(tmpdir(), 'millrace-bundle-'))
  const { status, stderr } = spawnSync(process.execPath, ['scripts/prepare.js'], { cwd: checkout, encoding: 'utf8' })
  expect(stderr).toBe('')
  expect(status).toBe(0)
})
afterAll(() => rmSync(home, { recursive: true }))

const start = (program: readonly string[], input?: string) =>
  spawnSync(process.execPath, [...program], {
    encoding: 'utf8',
    cwd: home,
    env: { PATH: process.env['PATH'], HOME: home },
    ...(input === undefined ? {} : { input }),
  })
const millrace = (...args: readonly string[]) => start([bin, ...args])

/** The files of the bundle, and the packages, that are loaded for some arguments. */
const loadedBy = (...args: readonly string[]): readonly string[] => {
  const hooks = `
    export const load = async (url, context, next) => {
      process._rawDebug('loaded ' + url)
      return next(url, context)
    }`
  const register = `import { register } from 'node:module'; register(${JSON.stringify(`data:text/javascript,${encodeURIComponent(hooks)}`)})`
  const { stderr } = start(['--import', `data:text/javascript,${encodeURIComponent(register)}`, bin, ...args])
  return [...stderr.matchAll(/^loaded (.*)$/gm)].map(([, url = '']) => url)
}

describe('the bundle', () => {
  test('is a program', () => {
    expect(statSync(bin).mode & 0o777).toBe(0o755)
    expect(readFileSync(bin, 'utf8').startsWith('#!/usr/bin/env node\n')).toBe(true)
  })

  test('shows its help and loads no storage, no cloud and no schema for it', () => {
    const { status, stdout, stderr } = millrace('--help')
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
    expect(stdout).toContain('millrace run -- echo hello')
    const loaded = loadedBy('--help')
    expect(loaded.some((url) => url.endsWith('/dist/bin/millrace.js'))).toBe(true)
    const heavy = loaded.filter((url) => /node_modules|sources|wire|commands|run-/.test(url))
    expect(heavy).toEqual([])
    const bytes = loaded
      .filter((url) => url.startsWith('file:') && url.includes('/dist/bin/'))
      .reduce((sum, url) => sum + statSync(new URL(url)).size, 0)
    expect(bytes).toBeLessThan(150_000)
  })

  test('the check above can fail: another command loads its schema', () => {
    expect(loadedBy('config', 'check').some((url) => url.includes('/sources-'))).toBe(true)
  })

  test('tells what is wrong in one line, with its exit code', () => {
    const { status, stdout, stderr } = millrace('run', '--foo', '--', 'x')
    expect({ status, stdout, stderr }).toEqual({
      status: 2,
      stdout: '',
      stderr: "millrace: unknown option '--foo'. Run millrace run --help.\n",
    })
  })

  test('reads a configuration and prints it, all of it, also into a pipe', () => {
    const { status, stdout } = millrace('config', 'print', '--set', 'jobs.queues=a,b')
    expect(status).toBe(0)
    expect(stdout).toContain('jobs.queues = ["a","b"]  # flag --set\n')
    expect(stdout.trimEnd().split('\n').length).toBeGreaterThan(20)
  })

  test('ends quietly when whoever reads its help has gone away', () => {
    const script = `${process.execPath} ${bin} --help | true; echo \${PIPESTATUS[0]}`
    // The reader may be quick enough to see it all.
    for (let round = 0; round < 3; round++) {
      const { stdout, stderr } = spawnSync('bash', ['-c', script], { encoding: 'utf8' })
      expect(['0\n', '141\n']).toContain(stdout)
      expect(stderr).toBe('')
    }
  })

  test('has the part that the doctor of the store starts, beside all others', () => {
    expect(readdirSync(join(checkout, 'dist/bin/parts'))).toContain('check.js')
  })

  test('is made again only if something changed', () => {
    const before = statSync(bin).mtimeMs
    const { status, stdout, stderr } = spawnSync(process.execPath, ['scripts/prepare.js'], {
      cwd: checkout,
      encoding: 'utf8',
    })
    expect({ status, stdout, stderr }).toEqual({ status: 0, stdout: '', stderr: '' })
    expect(statSync(bin).mtimeMs).toBe(before)
  })
})
