import type { StoredItem, StreamName } from './event.ts'

/** What opens a log: who runs what. */
export interface StartInfo {
  readonly attempt: number
  readonly workerId: string
  /** Of a command, with what tells it from a later process of the same number. */
  readonly pid?: number
  readonly pidStart?: string
  readonly argv?: readonly string[]
  readonly handler?: string
}

/** What ends a log. */
export interface EndInfo {
  readonly exitCode?: number
  readonly signal?: string
  readonly error?: string
}

export interface ProgressInfo {
  /** From 0 to 1. */
  readonly fraction?: number
  readonly text?: string
}

/** The log of one attempt from the writer's side. Events get their sequences, from 1, in the order of these calls. */
export interface AttemptLog {
  /** First, and once. Nobody waits for it: it is ordered before all output. */
  start(info: StartInfo): void
  /**
   * Bytes as they were read. They are copied before it returns. Undefined while there is room; otherwise a promise to wait for
   * before more is read, so that the process is made to wait (law B4).
   */
  output(stream: StreamName, bytes: Uint8Array): Promise<void> | undefined
  /** A critical event: what came before it is flushed first, then it. Resolves when both are stored. */
  error(message: string): Promise<void>
  progress(info: ProgressInfo): void
  /** Says that output is missing on purpose. */
  cut(stream: StreamName, bytes: number, reason: string): void
  /** While somebody watches, the first output of a quiet period is stored at once. */
  setWatched(watched: boolean): void
  /**
   * Publishes everything but the last of it, and gives back what belongs into the settling transaction: the last output and the
   * PROCESS_END. Nothing may be added afterwards. Rejects with what made publishing impossible.
   */
  finish(end: EndInfo): Promise<{ readonly output: readonly StoredItem[]; readonly end: StoredItem }>
  /** Stores nothing more: the attempt is lost. */
  abandon(): void
  /** Rejects when publishing was refused for good (the claim is lost), so that the child can be stopped. Never resolves. */
  readonly failed: Promise<never>
}
