import { type ChildProcess, spawn } from 'node:child_process'
import { stat } from 'node:fs/promises'
import type { Readable, Writable } from 'node:stream'
import type { Clock } from '../kernel/clock.ts'
import type { StreamName } from '../log/event.ts'
import type { Child, Command, Cut, Exec, Exit, NotStarted } from './exec.ts'
import { killLeftovers } from './leftovers.ts'
import { processStatus, signalGroup } from './process-group.ts'

/** Processes of this machine. Each leads a group of its own, so that a signal reaches whatever it started. */
export const createSystemExec = (deps: { readonly clock: Clock }): Exec => ({
  spawn: async (command) => {
    const started = launch(command)
    if (!('stdout' in started)) return started
    const { pid } = started
    return pid === undefined ? notStarted(await errorOf(started), command) : asChild(started, pid, command)
  },
  killLeftovers: async (jobId, attempt) => {
    await killLeftovers(deps, [{ jobId, attempt }])
  },
})

const launch = ({ argv, cwd, env, stdin }: Command): ChildProcess | NotStarted => {
  const [program = '', ...rest] = argv
  try {
    return spawn(program, rest, {
      ...(cwd === undefined ? {} : { cwd }),
      env: { ...env },
      shell: false,
      detached: true,
      windowsHide: true,
      stdio: [stdin === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'],
    })
  } catch (error) {
    // What the system refuses before there is a process, such as arguments that are too long, is thrown.
    return { error: describe(error as NodeJS.ErrnoException, program) }
  }
}

const errorOf = (child: ChildProcess): Promise<NodeJS.ErrnoException> =>
  new Promise((resolve) => child.once('error', resolve))

/** ENOENT names the program also when it is the directory that is missing. */
const notStarted = async (error: NodeJS.ErrnoException, { argv, cwd }: Command): Promise<NotStarted> => {
  const program = argv[0] ?? ''
  if (cwd === undefined || error.code !== 'ENOENT') return { error: describe(error, program) }
  const isThere = await stat(cwd).then(
    (found) => found.isDirectory(),
    () => false,
  )
  return { error: isThere ? describe(error, program) : `there is no directory '${cwd}' to run in (ENOENT)` }
}

const describe = (error: NodeJS.ErrnoException, program: string): string => {
  switch (error.code) {
    case 'ENOENT':
      return `there is no program '${program}' (ENOENT)`
    case 'EACCES':
      return `'${program}' may not be run (EACCES)`
    case 'E2BIG':
      return `arguments and environment of '${program}' are larger than the system allows (E2BIG)`
    default:
      return `'${program}' could not be started: ${error.message}`
  }
}

const asChild = (child: ChildProcess, pid: number, { stdin }: Command): Child => {
  const pipes: Readonly<Record<StreamName, Readable>> = {
    stdout: child.stdout as Readable,
    stderr: child.stderr as Readable,
  }
  const startTime = processStatus(pid)?.startTime
  const held = new Set<StreamName>()
  const exited = new Promise<Exit>((resolve) => {
    child.once('exit', (code, signal) => resolve(signal === null ? { code: code ?? 0 } : { signal }))
  })
  const closed = new Promise<void>((resolve) => child.once('close', () => resolve()))
  // A signal that could not be sent is told here too; whoever sent it has seen that nothing ended.
  child.on('error', () => {})
  for (const pipe of Object.values(pipes)) pipe.on('error', () => {})
  if (stdin !== undefined) feed(child.stdin as Writable, stdin)
  return {
    pid,
    startTime,
    onOutput: (stream, listener) => {
      pipes[stream].on('data', (bytes: Uint8Array) => {
        listener(bytes)
        // Node lets every pipe flow when the process exits, also those that were told to wait.
        if (held.has(stream)) pipes[stream].pause()
      })
    },
    pause: (stream) => {
      held.add(stream)
      pipes[stream].pause()
    },
    resume: (stream) => {
      held.delete(stream)
      pipes[stream].resume()
    },
    kill: (signal) => {
      // Once the group is empty its number can go to a stranger, who then leads it and began later.
      const leader = processStatus(pid)
      if (leader === undefined || startTime === undefined || leader.startTime === startTime) signalGroup(pid, signal)
    },
    exited,
    closed,
    cut: () => {
      const open = (['stdout', 'stderr'] as const).filter(
        (stream) => !pipes[stream].readableEnded && !pipes[stream].destroyed,
      )
      return open.map((stream): Cut => {
        const bytes = pipes[stream].readableLength
        pipes[stream].destroy()
        return { stream, bytes }
      })
    },
  }
}

/** A program may end, or close its input, before it has read all of it: that is its own affair. */
const feed = (stdin: Writable, text: string): void => {
  stdin.on('error', () => {})
  stdin.end(text)
}
