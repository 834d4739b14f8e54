// Fills the disk under a directory through the adapter, makes room, and goes on. Prints one line of JSON about it. Any
// rejection that nobody handles ends it with another code than 0.

import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Verdict } from '../../../src/tables/port.ts'
import { openAt } from './directory.ts'

const [folder = ''] = process.argv.slice(2)
const ballast = join(folder, 'ballast')
writeFileSync(ballast, Buffer.alloc(2 * 1024 * 1024))
const tables = await openAt(join(folder, 'data'))

const done = new Set<number>()
const code = (verdict: Verdict | undefined): string =>
  verdict?.kind === 'failed' ? verdict.fault.code : `${verdict?.kind}`
const put = async (n: number, bytes: number): Promise<string> => {
  const row = { log_id: 'log', sequence: n, payload: Buffer.alloc(bytes, n % 251) }
  const [verdict] = await tables.commit([{ actions: [{ kind: 'put', table: 'lines', row, keep: n % 2 === 0 }] }])
  if (verdict?.kind === 'done') done.add(n)
  return code(verdict)
}

let n = 0
const fill = async (bytes: number): Promise<string> => {
  for (;;) {
    n += 1
    const outcome = await put(n, bytes)
    if (outcome !== 'done') return outcome
  }
}
// Large writes first and then ever smaller ones, so that the disk is full at many positions of a commit.
const refusals = []
for (const bytes of [60_000, 20_000, 5_000, 900, 100])
  for (let time = 0; time < 5; time++) refusals.push(await fill(bytes))
const readable = await readAll()
rmSync(ballast)
n += 1
const after = await put(n, 60_000)
await tables.close()
const again = await openAt(join(folder, 'data'))
const survived = (await again.query('lines', { partition: 'log', from: n, limit: 1 })).entries.length
await again.close()
console.log(JSON.stringify({ refusals: [...new Set(refusals)], readable, after, survived, written: done.size > 0 }))

/** Whether exactly the rows that were done are there. */
async function readAll(): Promise<boolean> {
  const found = await tables.getMany(
    'lines',
    Array.from({ length: n }, (_, at) => ['log', at + 1]),
  )
  return found.every((row, at) => (row !== undefined) === done.has(at + 1))
}
