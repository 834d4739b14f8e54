// A place of its own for one story: a folder with a data directory in it, and the processes that the story starts there. They
// all have their working directory below the folder, and so have the programs of their jobs, so that whatever is left of them
// is found and ended when the story is over.

import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { mkdtempSync, readdirSync, readlinkSync, realpathSync, rmSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { bundledProgram } from '../../support/bundle.ts'
import { type Collected, collect } from './output.ts'

export interface Ended {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
}

/** A `millrace` that was started. */
export interface Started {
  readonly pid: number
  readonly process: ChildProcess
  readonly stdout: Collected
  readonly stderr: Collected
  /** When it has ended and everything it wrote is there. */
  readonly ended: Promise<Ended>
  /** Sends a signal. */
  send(signal: NodeJS.Signals): void
  /** Ends it with SIGKILL, and resolves when it is gone. */
  kill(): Promise<void>
}

export interface StartOptions {
  readonly env?: Readonly<Record<string, string>>
  readonly cwd?: string
  readonly input?: string
}

export interface Done {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

export interface Place {
  readonly folder: string
  readonly dataDir: string
  /** Starts `millrace` with these arguments. */
  start(args: readonly string[], options?: StartOptions): Started
  /** The same, to its end. */
  run(args: readonly string[], options?: StartOptions): Promise<Done>
  /** A gate that a program waits at with `read _ < name`, until it is opened here. */
  gate(name: string): { open(): Promise<void> }
  /** Programs that were started here and still are there, `millrace` itself aside. */
  programs(): readonly number[]
}

/** The environment of whoever sits at the terminal: nothing that could lead a process to another place. */
const bareEnvironment = (dataDir: string): Record<string, string> => ({
  PATH: process.env['PATH'] ?? '',
  HOME: process.env['HOME'] ?? '',
  LANG: 'C.UTF-8',
  MILLRACE_DATA_DIR: dataDir,
})

/** Gone, with all that was started in it, when the test has finished, or when all tests of a file have (`afterAll`). */
export const createPlace = (whenOver: (end: () => Promise<void>) => void = onTestFinished): Place => {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'millrace-story-')))
  const dataDir = join(folder, 'data')
  const started = new Set<Started>()

  const start = (args: readonly string[], options: StartOptions = {}): Started => {
    const child = spawn(process.execPath, [bundledProgram, ...args], {
      cwd: options.cwd ?? folder,
      env: { ...bareEnvironment(dataDir), ...options.env },
      stdio: [options.input === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'],
    })
    if (options.input !== undefined) child.stdin?.end(options.input)
    const { pid, stdout, stderr } = child
    if (pid === undefined || stdout === null || stderr === null) throw new Error('millrace could not be started')
    const ended = new Promise<Ended>((resolve) => child.once('close', (code, signal) => resolve({ code, signal })))
    const name = `millrace ${args.join(' ')}`
    const one: Started = {
      pid,
      process: child,
      stdout: collect(stdout, `stdout of ${name}`),
      stderr: collect(stderr, `stderr of ${name}`),
      ended,
      send: (signal) => void child.kill(signal),
      kill: async () => {
        child.kill('SIGKILL')
        await ended
      },
    }
    started.add(one)
    void ended.then(() => started.delete(one))
    return one
  }
  const programs = () => {
    const own = new Set([...started].map(({ pid }) => pid))
    return processesIn(folder).filter((pid) => !own.has(pid))
  }

  whenOver(async () => {
    await Promise.all([...started].map((one) => one.kill()))
    for (const pid of programs()) end(pid)
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
  })

  return {
    folder,
    dataDir,
    start,
    run: async (args, options) => {
      const one = start(args, options)
      const { code } = await one.ended
      return { code, stdout: one.stdout.text(), stderr: one.stderr.text() }
    },
    gate: (name) => {
      execFileSync('mkfifo', [join(folder, name)])
      // Opening waits for a reader, so it cannot be missed.
      return { open: () => writeFile(join(folder, name), 'go\n') }
    },
    programs,
  }
}

const processesIn = (folder: string): readonly number[] =>
  readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .filter((name) => {
      const cwd = linkOf(`/proc/${name}/cwd`)
      return cwd === folder || cwd.startsWith(`${folder}/`)
    })
    .map(Number)

const linkOf = (path: string): string => {
  try {
    return readlinkSync(path)
  } catch {
    return ''
  }
}

const end = (pid: number): void => {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // It has ended by itself.
  }
}

/** Whether a process is there and not only waiting to be buried. */
export const isAlive = (pid: number): boolean => linkOf(`/proc/${pid}/exe`) !== ''
