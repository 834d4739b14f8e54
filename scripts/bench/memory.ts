// What `millrace up` needs while a job prints much, and whether every byte of it can be read back: text, binary output, and one
// line of 50 MB. A tenth of the size unless --full is given. Run: npm run bench -- memory [--full]

import { createHash } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { extname, join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { type Client, createClient } from '../../src/client/connect.ts'
import { systemClock } from '../../src/kernel/clock.ts'
import { systemRandom } from '../../src/kernel/random.ts'
import { eachOutput } from '../../src/log/stored-batch.ts'
import type { Row } from './row.ts'
import { anonymousMegabytes, startUp, type Up } from './up.ts'

const printer = join(import.meta.dirname, `print-bytes${extname(import.meta.filename)}`)
const target = 200
const lookEveryMs = 20
const settleMs = 1_000

const cases = [
  { kind: 'lines', what: 'lines of text', megabytes: 2_000 },
  { kind: 'binary', what: 'binary output', megabytes: 500 },
  { kind: 'line', what: 'one line', megabytes: 50 },
] as const

/** Runs the job, follows it from here, and compares what came with what was printed. */
const follow = async (client: Client, kind: string, megabytes: number): Promise<void> => {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-bench-'))
  const file = join(folder, 'hash')
  const params = { kind: 'command', argv: [process.execPath, printer, kind, String(megabytes), file] } as const
  const { jobId } = await client.enqueue({ queue: 'default', params })
  const hash = createHash('sha256')
  let bytes = 0
  for await (const entry of client.followBatches({ jobId })) {
    if (!('item' in entry)) continue
    const damage = eachOutput(entry.item, (_, data, start, end) => {
      hash.update(data.subarray(start, end))
      bytes += end - start
    })
    if (damage !== undefined) throw new Error(damage.damage)
  }
  const printed = readFileSync(file, 'utf8')
  rmSync(folder, { recursive: true })
  if (hash.digest('hex') !== printed) throw new Error(`${kind}: what was read back is not what was printed (${bytes})`)
}

/** The most that the process needed while the work was done, beyond what it needed before. */
const growth = async ({ pid }: Up, work: Promise<void>): Promise<number> => {
  const idle = anonymousMegabytes(pid)
  let most = idle
  let isOver = false
  const watch = async () => {
    while (!isOver) {
      most = Math.max(most, anonymousMegabytes(pid))
      await pause(lookEveryMs)
    }
  }
  const watching = watch()
  try {
    await work
  } finally {
    isOver = true
    await watching
  }
  return most - idle
}

export const benchMemory = async (given: readonly string[]): Promise<readonly Row[]> => {
  const share = given.includes('--full') ? 1 : 0.1
  const rows: Row[] = []
  for (const { kind, what, megabytes } of cases) {
    const up = await startUp()
    const client = createClient({ ...up.at, clock: systemClock, random: systemRandom })
    await pause(settleMs)
    // The line is what is asked for, whatever the rest.
    const size = kind === 'line' ? megabytes : megabytes * share
    const value = await growth(up, follow(client, kind, size))
    client.close()
    await up.end()
    const name = `memory of its own above idle, a job that prints ${size} MB: ${what}, read back by hash`
    rows.push({ name, value, unit: 'MB', target, ok: !(value >= target) })
  }
  return rows
}
