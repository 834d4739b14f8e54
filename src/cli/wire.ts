// The only file of the command line that knows what stands behind it: the process, and the parts of Millrace.

import { homedir, tmpdir } from 'node:os'
import { assert } from '../kernel/assert.ts'
import { systemClock } from '../kernel/clock.ts'
import { systemRandom } from '../kernel/random.ts'
import type { Backend, CliContext } from './context.ts'
import { createFiles } from './files.ts'
import { createInput, createOutput } from './outputs.ts'
import { type Signals, stopSignals } from './signals.ts'

export const createContext = (): CliContext => {
  const uid = process.getuid?.()
  return {
    clock: systemClock,
    random: systemRandom,
    host: {
      env: process.env,
      cwd: process.cwd(),
      platform: process.platform,
      home: homedir(),
      temporary: tmpdir(),
      uid,
    },
    stdin: createInput(process.stdin),
    stdout: createOutput(process.stdout),
    stderr: createOutput(process.stderr),
    signals: processSignals,
    files: createFiles(uid),
    backend,
  }
}

const processSignals: Signals = {
  listen: (listener) => {
    const taken = stopSignals.map((signal) => [signal, () => listener(signal)] as const)
    for (const [signal, take] of taken) process.on(signal, take)
    return () => {
      for (const [signal, take] of taken) process.off(signal, take)
    }
  },
}

/** Each of these is one call into another part; see Backend for what it promises. */
const backend: Backend = {
  connect: async () => notWired('connect'),
  open: async () => notWired('open'),
  serve: async () => notWired('serve'),
  work: async () => notWired('work'),
  provision: async () => notWired('provision'),
}

const notWired = (verb: string): never => {
  assert(false, `the command line is not wired to ${verb}`)
}
