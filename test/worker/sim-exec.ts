import type { Clock } from '../../src/kernel/clock.ts'
import type { StreamName } from '../../src/log/event.ts'
import type { Child, Command, Exec, Exit, NotStarted, StopSignal } from '../../src/worker/exec.ts'

/** A process that does only what it is told. */
export interface SimProcess {
  readonly command: Command
  readonly pid: number
  readonly signals: { readonly signal: StopSignal; readonly at: number }[]
  /** Delivered, or kept while the pipe is paused. */
  write(stream: StreamName, text: string): void
  /** Ends by itself; the pipes close too unless somebody holds them. */
  exit(exit: Exit, pipes?: 'closed' | 'held'): void
  close(): void
  readonly isAlive: boolean
  readonly isCut: boolean
  readonly paused: ReadonlySet<StreamName>
}

export type Behaviour = (process: SimProcess, signal: StopSignal) => void

/** Dies of SIGTERM, as most programs do. */
export const obedient: Behaviour = (process, signal) => process.exit({ signal })
/** Dies of SIGKILL only. */
export const stubborn: Behaviour = (process, signal) => {
  if (signal === 'SIGKILL') process.exit({ signal })
}
/** Does not even die of SIGKILL. */
export const undying: Behaviour = () => {}

export interface SimExec extends Exec {
  readonly processes: SimProcess[]
  behaviour: Behaviour
  /** Answers instead of starting anything. */
  refusal: NotStarted | undefined
  /** Runs when a process has begun. */
  onStart: (process: SimProcess) => void
  /** While set, `spawn` does not answer. */
  gate: Promise<void> | undefined
}

export const createSimExec = (clock: Clock): SimExec => {
  const exec: SimExec = {
    processes: [],
    behaviour: obedient,
    refusal: undefined,
    onStart: () => {},
    gate: undefined,
    spawn: async (command) => {
      await exec.gate
      if (exec.refusal !== undefined) return exec.refusal
      const { process, child } = createProcess(clock, command, 100 + exec.processes.length, exec.behaviour)
      exec.processes.push(process)
      queueMicrotask(() => exec.onStart(process))
      return child
    },
  }
  return exec
}

const createProcess = (clock: Clock, command: Command, pid: number, behave: Behaviour) => {
  const listeners = new Map<StreamName, (bytes: Uint8Array) => void>()
  const paused = new Set<StreamName>()
  const kept: { stream: StreamName; text: string }[] = []
  let isAlive = true
  let isCut = false
  let isClosed = false
  let wantsClose = false
  let exited: (exit: Exit) => void = () => {}
  let closed: () => void = () => {}

  const deliver = (): void => {
    for (let next = kept[0]; next !== undefined && !paused.has(next.stream); next = kept[0]) {
      const listener = listeners.get(next.stream)
      if (listener === undefined) return
      kept.shift()
      listener(Buffer.from(next.text))
    }
    if (wantsClose && kept.length === 0 && !isClosed) {
      isClosed = true
      closed()
    }
  }
  const process: SimProcess = {
    command,
    pid,
    signals: [],
    paused,
    write: (stream, text) => {
      if (isCut || isClosed) return
      kept.push({ stream, text })
      deliver()
    },
    exit: (exit, pipes = 'closed') => {
      if (!isAlive) return
      isAlive = false
      exited(exit)
      if (pipes === 'closed') process.close()
    },
    close: () => {
      wantsClose = true
      deliver()
    },
    get isAlive() {
      return isAlive
    },
    get isCut() {
      return isCut
    },
  }
  const child: Child = {
    pid,
    startTime: `start-${pid}`,
    onOutput: (stream, listener) => {
      listeners.set(stream, listener)
      deliver()
    },
    pause: (stream) => void paused.add(stream),
    resume: (stream) => {
      paused.delete(stream)
      deliver()
    },
    kill: (signal) => {
      process.signals.push({ signal, at: clock.monotonic() })
      behave(process, signal)
    },
    exited: new Promise((resolve) => {
      exited = resolve
    }),
    closed: new Promise((resolve) => {
      closed = resolve
    }),
    cut: () => {
      isCut = true
      isClosed = true
      return [{ stream: 'stdout', bytes: kept.reduce((sum, { text }) => sum + text.length, 0) }]
    },
  }
  return { process, child }
}
