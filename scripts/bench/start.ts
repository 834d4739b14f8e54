// How long the command line takes to start, and what it needs when it has nothing to do, against a bare Node.
// Run: npm run bench -- start

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as pause } from 'node:timers/promises'
import { median, type Row } from './row.ts'
import { anonymousMegabytes, program, startUp } from './up.ts'

const rounds = 11
/** Until what was needed to start is given back. */
const settleMs = 3_000
const idleMegabytesMax = 80

const untilExit = async (given: readonly string[]): Promise<number> => {
  const begun = performance.now()
  const child = spawn(process.execPath, given, { stdio: 'ignore' })
  const [code] = await once(child, 'exit')
  if (code !== 0) throw new Error(`${given.join(' ')} ended with ${code}`)
  return performance.now() - begun
}

const untilReady = async (): Promise<number> => {
  const up = await startUp()
  await up.end()
  return up.readyMs
}

const idleMegabytes = async (): Promise<number> => {
  const up = await startUp()
  await pause(settleMs)
  const megabytes = anonymousMegabytes(up.pid)
  await up.end()
  return megabytes
}

export const benchStart = async (): Promise<readonly Row[]> => {
  const took: { readonly bare: number; readonly help: number; readonly ready: number }[] = []
  for (let round = -1; round < rounds; round++) {
    const one = {
      bare: await untilExit(['-e', '0']),
      help: await untilExit([program, '--help']),
      ready: await untilReady(),
    }
    if (round >= 0) took.push(one)
  }
  const row = (name: string, of: 'help' | 'ready', target: number): Row => {
    const ratio = median(took.map((one) => one[of] / one.bare))
    return { name, value: median(took.map((one) => one[of])), unit: 'ms', ratio, target, ok: ratio <= target }
  }
  const idle = await idleMegabytes()
  return [
    { name: 'bare: node -e 0', value: median(took.map(({ bare }) => bare)), unit: 'ms' },
    row('millrace --help', 'help', 3),
    row('millrace up, to ready', 'ready', 4),
    {
      name: 'millrace up, idle: memory of its own',
      value: idle,
      unit: 'MB',
      target: idleMegabytesMax,
      ok: !(idle >= idleMegabytesMax),
    },
  ]
}
