// The only file of the command line that knows what stands behind it: the process, and the parts of Millrace.

import { homedir, tmpdir } from 'node:os'
import { systemClock } from '../kernel/clock.ts'
import { systemRandom } from '../kernel/random.ts'
import { createBackend } from './backend/backend.ts'
import type { CliContext, Host } from './context.ts'
import { createFiles } from './files.ts'
import { createInput, createOutput } from './outputs.ts'
import { type Signals, stopSignals } from './signals.ts'

export const createContext = (): CliContext => {
  const uid = process.getuid?.()
  const host: Host = {
    // A copy, because what is set below is for us and not for the programs of jobs.
    env: { ...process.env },
    cwd: process.cwd(),
    platform: process.platform,
    home: homedir(),
    temporary: tmpdir(),
    uid,
  }
  // Which Node we run on is for us to say; the cloud library would say it in ten lines before every answer.
  process.env['AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED'] ??= 'true'
  return {
    clock: systemClock,
    random: systemRandom,
    host,
    stdin: createInput(process.stdin),
    stdout: createOutput(process.stdout),
    stderr: createOutput(process.stderr),
    signals: processSignals,
    files: createFiles(uid),
    backend: createBackend({ clock: systemClock, random: systemRandom, host, fatal }),
  }
}

/** Nobody knows what the disk holds: the process ends as it does for everything that nobody expected. */
const fatal = (error: unknown): void => {
  queueMicrotask(() => {
    throw error
  })
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
