// Reading a log of 10,000 lines from line 9,000 on: what is read of the store and how long it takes, against one item per line
// and against reading from the start; and how long the first line takes at any place. Run: npm run bench -- replay

import { extname, join } from 'node:path'
import { type Client, createClient } from '../../src/client/connect.ts'
import { systemClock } from '../../src/kernel/clock.ts'
import { systemRandom } from '../../src/kernel/random.ts'
import { eachOutput } from '../../src/log/stored-batch.ts'
import { type Rig, startRig } from './rig.ts'
import { median, type Row } from './row.ts'

const printer = join(import.meta.dirname, `print-lines${extname(import.meta.filename)}`)
const lines = 10_000
const from = 9_000
const rounds = 9
const firstRounds = 60

/** The sequence of a line: PROCESS_START is the first event. */
const sequenceOf = (line: number): number => line + 1

const written = async ({ runtime }: Rig, execution: Readonly<Record<string, number>>): Promise<string> => {
  const params = { kind: 'command', argv: [process.execPath, printer, 'numbered', String(lines)] } as const
  const { jobId } = await runtime.enqueue({ queue: 'default', params, execution })
  for await (const _ of runtime.followBatches({ jobId }));
  return jobId
}

interface Reading {
  readonly items: number
  readonly outputs: number
  readonly tookMs: number
}

/** Everything from a line on, unpacked. */
const readFrom = async (client: Client, jobId: string, line: number): Promise<Reading> => {
  const begun = performance.now()
  let [items, outputs] = [0, 0]
  for await (const entry of client.followBatches({ jobId, fromSequence: sequenceOf(line), noFollow: true })) {
    if (!('item' in entry)) continue
    items += 1
    eachOutput(entry.item, () => (outputs += 1), entry.fromSequence)
  }
  return { items, outputs, tookMs: performance.now() - begun }
}

const firstLine = async (client: Client, jobId: string, line: number): Promise<number> => {
  const begun = performance.now()
  for await (const entry of client.followBatches({ jobId, fromSequence: sequenceOf(line), noFollow: true })) {
    let isThere = false
    if ('item' in entry) eachOutput(entry.item, () => (isThere = true), entry.fromSequence)
    if (isThere) break
  }
  return performance.now() - begun
}

export const benchReplay = async (): Promise<readonly Row[]> => {
  const rig = await startRig()
  const client = createClient({ ...rig.at, clock: systemClock, random: systemRandom })
  const batched = await written(rig, {})
  const single = await written(rig, { maxBatchSize: 1, batchSizeBound: 1 })
  const read: Record<'ours' | 'single' | 'start', Reading[]> = { ours: [], single: [], start: [] }
  for (let round = -3; round < rounds; round++) {
    const one = {
      ours: await readFrom(client, batched, from),
      single: await readFrom(client, single, from),
      start: await readFrom(client, batched, 1),
    }
    if (round < 0) continue
    for (const way of ['ours', 'single', 'start'] as const) read[way].push(one[way])
  }
  const places = [1, 2_500, 5_000, 7_500, 9_999]
  const first = new Map<number, number[]>(places.map((line) => [line, []]))
  for (let round = -10; round < firstRounds; round++) {
    for (const [line, took] of first) {
      const ms = await firstLine(client, batched, line)
      if (round >= 0) took.push(ms)
    }
  }
  client.close()
  await rig.end()

  const of = (way: keyof typeof read, what: keyof Reading): number => median(read[way].map((one) => one[what]))
  const fewer = of('ours', 'items') / of('single', 'items')
  const medians = [...first.values()].map(median)
  const spread = Math.max(...medians) / Math.min(...medians)
  return [
    {
      name: `items read from line ${from} of ${lines} on, one item per line`,
      value: of('single', 'items'),
      unit: 'items',
    },
    { name: 'items read, in batches', value: of('ours', 'items'), unit: 'items', ratio: fewer },
    { name: 'items read, in batches from the start', value: of('start', 'items'), unit: 'items' },
    { name: 'time over the API, one item per line', value: of('single', 'tookMs'), unit: 'ms' },
    {
      name: 'time over the API, in batches',
      value: of('ours', 'tookMs'),
      unit: 'ms',
      ratio: of('ours', 'tookMs') / of('single', 'tookMs'),
    },
    { name: 'time over the API, in batches from the start', value: of('start', 'tookMs'), unit: 'ms' },
    {
      name: `first line over the API at ${places.join(', ')}; ratio: slowest place to fastest`,
      value: median(medians),
      unit: 'ms',
      ratio: spread,
      target: 1.2,
      ok: spread <= 1.2,
    },
  ]
}
