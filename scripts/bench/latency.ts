// How long a line takes from the program that prints it to a follower in another process, while it is watched; it is durable
// before it is seen. Run: npm run bench -- latency

import { extname, join } from 'node:path'
import type { ToFollow } from './log-follower.ts'
import { startPartner } from './partner.ts'
import { startRig } from './rig.ts'
import type { Row } from './row.ts'

const printer = join(import.meta.dirname, `print-clock${extname(import.meta.filename)}`)
const lines = 1_500

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
  const took = [...(await measure(lines))].sort((a, b) => a - b)
  await rig.end()
  await follower.end()
  if (took.length !== lines) throw new Error(`${took.length} of ${lines} lines were seen`)
  const at = (share: number): number => took[Math.floor(share * (took.length - 1))] ?? Number.NaN
  const row = (name: string, share: number, target: number): Row => ({
    name: `line printed to seen in another process, ${name}`,
    value: at(share),
    unit: 'ms',
    target,
    ok: at(share) < target,
  })
  return [row('median', 0.5, 2), row('99 of 100', 0.99, 10)]
}
