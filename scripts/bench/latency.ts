// How long a line takes from the program that prints it to a follower in another process, while it is watched; it is durable
// before it is seen. Run: npm run bench -- latency

import { spawn } from 'node:child_process'
import { closeSync, fdatasyncSync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { extname, join } from 'node:path'
import type { ToFollow } from './log-follower.ts'
import { startPartner } from './partner.ts'
import { startRig } from './rig.ts'
import type { Row } from './row.ts'

const printer = join(import.meta.dirname, `print-clock${extname(import.meta.filename)}`)
const lines = 1_500

/** What this machine can do just now: each line read from the pipe, written to a file and synced, and nothing else. */
const bareLines = (count: number): Promise<readonly number[]> =>
  new Promise((resolve) => {
    const folder = mkdtempSync(join(tmpdir(), 'millrace-bench-'))
    const file = openSync(join(folder, 'log'), 'w')
    const child = spawn(process.execPath, [printer, String(count)], { stdio: ['ignore', 'pipe', 'inherit'] })
    const took: number[] = []
    child.stdout.on('data', (bytes: Buffer) => {
      writeSync(file, bytes)
      fdatasyncSync(file)
      const at = process.hrtime.bigint()
      for (const line of bytes.toString().split('\n')) if (line !== '') took.push(Number(at - BigInt(line)) / 1e6)
    })
    child.once('close', () => {
      closeSync(file)
      rmSync(folder, { recursive: true })
      resolve(took)
    })
  })

export const benchLatency = async (): Promise<readonly Row[]> => {
  const follower = await startPartner<ToFollow, readonly number[]>('latency-follower')
  const rig = await startRig()
  const measure = async (count: number): Promise<readonly number[]> => {
    const params = { kind: 'command', argv: [process.execPath, printer, String(count)] } as const
    const { jobId } = await rig.runtime.enqueue({ queue: 'default', params })
    return follower.ask({ ...rig.at, jobId })
  }
  // The first ones warm up.
  await measure(200)
  const bare = await bareLines(lines / 3)
  const took = await measure(lines)
  await rig.end()
  await follower.end()
  if (took.length !== lines) throw new Error(`${took.length} of ${lines} lines were seen`)
  return shares.flatMap(({ name, share, target }): Row[] => {
    const value = at(took, share)
    return [
      { name: `bare: line printed to read, written and synced, ${name}`, value: at(bare, share), unit: 'ms' },
      { name: `line printed to seen in another process, ${name}`, value, unit: 'ms', target, ok: value < target },
    ]
  })
}

const shares = [
  { name: 'median', share: 0.5, target: 2 },
  { name: '99 of 100', share: 0.99, target: 10 },
]

const at = (took: readonly number[], share: number): number =>
  [...took].sort((a, b) => a - b)[Math.floor(share * (took.length - 1))] ?? Number.NaN
