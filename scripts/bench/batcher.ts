import { argv } from 'node:process'
import { fileURLToPath } from 'node:url'
import { type Batcher, createBatcher } from '../../src/batch/batcher.ts'
import { systemClock } from '../../src/kernel/clock.ts'
import { systemRandom } from '../../src/kernel/random.ts'
import { formatRow, median, type Row } from './row.ts'

// What an item costs on its way through the batcher, measured against a bare array push with a count check.

const itemsPerRound = 200_000
/** What arrives in one turn of the event loop: enough to keep the batcher saturated. */
const itemsPerTurn = 20_000
const rounds = 41
const warmUps = 5

const cases = [
  { count: 50, target: 20 },
  { count: 500, target: 5 },
]

export const benchBatcher = async (): Promise<readonly Row[]> => {
  const rows: Row[] = []
  for (const { count, target } of cases) rows.push(...(await compare(count, target)))
  return rows
}

/** The two sides take turns, so that whatever else the machine does hits both; the ratio is that of neighbours. */
const compare = async (count: number, target: number): Promise<readonly Row[]> => {
  const pairs: { readonly bare: number; readonly batched: number }[] = []
  for (let round = -warmUps; round < rounds; round++) {
    const bare = await nsPerItem(() => pushBare(count))
    const batched = await nsPerItem(() => addBatched(count))
    if (round >= 0) pairs.push({ bare, batched })
  }
  const ratio = median(pairs.map(({ bare, batched }) => batched / bare))
  const value = median(pairs.map(({ batched }) => batched))
  return [
    { name: `bare push, ${count} a batch`, value: median(pairs.map(({ bare }) => bare)), unit: 'ns/item' },
    { name: `batcher, ${count} a batch`, value, unit: 'ns/item', ratio, target, ok: ratio <= target },
  ]
}

const nsPerItem = async (run: () => number | Promise<number>): Promise<number> => {
  const startedAt = systemClock.monotonic()
  const flushed = await run()
  const tookMs = systemClock.monotonic() - startedAt
  if (flushed !== itemsPerRound) throw new Error(`${flushed} of ${itemsPerRound} items came out`)
  return (tookMs * 1e6) / itemsPerRound
}

const pushBare = (count: number): number => {
  let flushed = 0
  let items: string[] = []
  const flush = (batch: readonly string[]) => {
    flushed += batch.length
  }
  for (let n = 0; n < itemsPerRound; n++) {
    items.push(line)
    if (items.length >= count) {
      const full = items
      items = []
      flush(full)
    }
  }
  flush(items)
  return flushed
}

const addBatched = async (count: number): Promise<number> => {
  let flushed = 0
  const batcher = createBatcher<string>(
    { clock: systemClock, random: systemRandom },
    {
      count,
      bytes: 1_048_576,
      ageMs: 1_000,
      heldCount: 2 * itemsPerTurn,
      heldBytes: 64 * 1_048_576,
      retry: { attemptsMax: 3, baseMs: 10, capMs: 1_000 },
    },
    {
      sizeOf,
      flush: ({ items }) => {
        flushed += items.length
        return acknowledged
      },
    },
  )
  for (let added = 0; added < itemsPerRound; added += itemsPerTurn) {
    addAll(batcher)
    await turn()
  }
  await batcher.drain()
  return flushed
}

/** A plain function, because an async one starts over in the interpreter after each wait and would be what is measured. */
const addAll = (batcher: Batcher<string>): void => {
  for (let n = 0; n < itemsPerTurn; n++) {
    if (batcher.add(line) !== undefined) throw new Error('the batcher fell behind')
  }
}

const line = 'a line of output as a build would write it'
const sizeOf = (item: string) => item.length
const acknowledged = Promise.resolve()
const turn = () => new Promise((resolve) => setImmediate(resolve))

if (argv[1] === fileURLToPath(import.meta.url)) {
  for (const row of await benchBatcher()) console.log(formatRow(row))
}
