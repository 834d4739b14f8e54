import { type ChildProcessByStdio, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import { fileURLToPath } from 'node:url'

export interface Child {
  readonly process: ChildProcessByStdio<null, Readable, null>
  readonly lines: AsyncIterableIterator<string>
  /** Kills it, and resolves when it is gone. */
  kill(): Promise<void>
  readonly ended: Promise<{ readonly code: number | null; readonly signal: NodeJS.Signals | null }>
}

/** Starts a program of this folder in a process of its own, behind a command that prepares its surroundings. */
export const startChild = (program: string, args: readonly string[], before: readonly string[] = []): Child => {
  const file = fileURLToPath(new URL(program, import.meta.url))
  const [command = process.execPath, ...rest] = [...before, process.execPath, '--import', 'tsx', file, ...args]
  const child = spawn(command, rest, { stdio: ['ignore', 'pipe', 'inherit'] })
  const ended = once(child, 'exit').then(([code, signal]) => ({ code, signal }))
  return {
    process: child,
    lines: createInterface({ input: child.stdout })[Symbol.asyncIterator](),
    ended,
    kill: async () => {
      child.kill('SIGKILL')
      await ended
    },
  }
}
