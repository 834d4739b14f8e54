import type { Options } from '../config/options.ts'
import type { Clock } from '../kernel/clock.ts'
import type { Random } from '../kernel/random.ts'
import type { JobsClient } from './jobs-client.ts'
import type { Signals } from './signals.ts'

/** Everything a command may touch. The real one is made in wire.ts, another one in tests. */
export interface CliContext {
  readonly clock: Clock
  readonly random: Random
  readonly host: Host
  readonly stdin: Input
  readonly stdout: Output
  readonly stderr: Output
  readonly signals: Signals
  readonly files: Files
  readonly backend: Backend
}

/** The process as it was started. */
export interface Host {
  readonly env: Readonly<Record<string, string | undefined>>
  readonly cwd: string
  readonly platform: NodeJS.Platform
  readonly home: string
  readonly temporary: string
  /** Undefined where files have no owners. */
  readonly uid: number | undefined
}

export interface Input {
  readonly isTerminal: boolean
  /** Everything up to its end; throws USAGE_INVALID beyond the limit. */
  readAll(bytesMax: number): Promise<Uint8Array>
}

export interface Output {
  readonly isTerminal: boolean
  /** Columns of the terminal, as they are now; 80 where it does not say. */
  readonly columns: number
  /** Undefined while there is room; otherwise a promise to wait for. Throws or rejects with OUTPUT_CLOSED. */
  write(bytes: Uint8Array | string): Promise<void> | undefined
}

export interface Files {
  /** The text of a file, undefined if there is none. Throws CONFIG_INVALID if it is too large or cannot be read. */
  readText(path: string): Promise<string | undefined>
  /** The token in a file that nobody else can read; see token-file.ts. */
  readToken(path: string): Promise<string | undefined>
}

/** Whether this process executes jobs: its own ones only, all of them, or none. */
export type RuntimeMode = 'run' | 'visit'

/** A runtime in this process, on the configured storage. */
export interface LocalRuntime extends JobsClient {
  /** Jobs that an earlier holder left and that `run` does not execute. */
  leftBehind(): Promise<number>
  /** Jobs of others that came through our socket and are not done; `ended` resolves when none is left. */
  guests(): { readonly count: number; readonly ended: Promise<void> }
  /** Ends processes and gives their jobs back, without waiting for them. */
  stopNow(): Promise<void>
}

/** A server or a worker that runs until it is told to stop. */
export interface Service {
  /** Where it listens, as a client would spell it; empty for a worker. */
  readonly addresses: readonly string[]
  /** Drains: takes nothing new, ends what is under way. Calling it twice is fine. */
  stop(): Promise<void>
  /** Ends processes and gives their jobs back, without waiting for them. */
  stopNow(): Promise<void>
  /** Rejects when it cannot go on by itself. Never resolves before `stop`. */
  readonly ended: Promise<void>
}

export interface ProvisionStep {
  /** Such as `table millrace_jobs`. */
  readonly resource: string
  readonly action: 'create' | 'change' | 'keep'
  readonly detail?: string
}

export interface Provisioning {
  /** What would be done. Changes nothing. */
  plan(): Promise<readonly ProvisionStep[]>
  /** Does it, telling each step as it is done. Doing it again changes nothing. */
  apply(done: (step: ProvisionStep) => void): Promise<void>
  /** The same as a CloudFormation template, in JSON. */
  template(): string
}

export interface Target {
  /** A URL; for a socket `unix:` and its path. */
  readonly address: string
  readonly token: string | undefined
}

/** What is filled in by wire.ts: the parts of Millrace that stand behind the commands. */
export interface Backend {
  /** Makes sure that somebody listens: throws UNREACHABLE within a second or so if nobody does. */
  connect(target: Target): Promise<JobsClient>
  /** Throws DIRECTORY_HELD if another process has the data directory. With mode `run` it listens on the directory's socket. */
  open(options: Options, mode: RuntimeMode): Promise<LocalRuntime>
  /** Server and store, with workers or without. */
  serve(options: Options, how: { readonly workers: boolean; readonly handlers: readonly string[] }): Promise<Service>
  /** Workers alone, that work for a server elsewhere. */
  work(options: Options, target: Target, how: { readonly handlers: readonly string[] }): Promise<Service>
  provision(options: Options): Promise<Provisioning>
}
