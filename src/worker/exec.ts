import type { StreamName } from '../log/event.ts'

/** A program with its arguments. No shell ever reads them. */
export interface Command {
  readonly argv: readonly string[]
  readonly cwd?: string
  /** All of it: nothing is inherited. */
  readonly env: Readonly<Record<string, string>>
  /** What the program reads; it sees the end after it. */
  readonly stdin?: string
}

/** How a process ended: by itself with a code, or by a signal. */
export type Exit = { readonly code: number } | { readonly signal: string }

export type StopSignal = 'SIGTERM' | 'SIGKILL'

/** The program never ran. */
export interface NotStarted {
  readonly error: string
}

/** What is missing of a stream that was cut: at least this much. */
export interface Cut {
  readonly stream: StreamName
  readonly bytes: number
}

/** A process, and the group of those it starts. */
export interface Child {
  readonly pid: number
  /** Tells it from a later process with its pid; undefined where the platform does not say. */
  readonly startTime: string | undefined
  /** Bytes as they are read, from now on; called once per stream. Nothing is lost before it. */
  onOutput(stream: StreamName, listener: (bytes: Uint8Array) => void): void
  /** Stops reading, so that the process has to wait. */
  pause(stream: StreamName): void
  resume(stream: StreamName): void
  /** Signals the whole group. Does nothing if nobody is left in it. */
  kill(signal: StopSignal): void
  /** The process itself has ended. Output may still come. */
  readonly exited: Promise<Exit>
  /** It has ended and so have its pipes: whoever it started has let go of them too. */
  readonly closed: Promise<void>
  /** Lets go of the pipes that are still open, and names them. `closed` resolves then. */
  cut(): readonly Cut[]
}

/** The port of processes. */
export interface Exec {
  /** Never rejects: a program that cannot be started is an answer. */
  spawn(command: Command): Promise<Child | NotStarted>
  /** Kills what this attempt left behind outside its group, where the platform can find it. */
  killLeftovers?(jobId: string, attempt: number): Promise<void>
}
