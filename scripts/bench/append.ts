import { argv } from 'node:process'
import { fileURLToPath } from 'node:url'
import { executionOptions } from '../../src/config/sections/jobs.ts'
import { systemClock } from '../../src/kernel/clock.ts'
import { systemRandom } from '../../src/kernel/random.ts'
import { createAttemptLog } from '../../src/log/append.ts'
import { type Deflate, deflatePooled } from '../../src/log/payload.ts'
import { formatRow, median, type Row } from './row.ts'

// What a line of output costs on its way to the store: cut into lines, hashed, put into pages, compressed. Measured against bare
// splitting of the same chunks at their line breaks, in the same run. Storing itself costs nothing here but a turn.

const lineBytes = 80
const chunkBytes = 64 * 1_024
const chunksPerRound = 400
const linesPerRound = Math.floor((chunksPerRound * chunkBytes) / lineBytes)
const rounds = 15
const warmUps = 3
/** A pipe is read in turns, and between two of them others get their share. */
const chunksPerTurn = 8

const cases: readonly { readonly name: string; readonly deflate: Deflate; readonly target: number }[] = [
  // The cost on the main thread: with cores to spare, this is what everything else in the process feels of it.
  { name: 'lines appended, compressed elsewhere', deflate: (plain) => plain.subarray(0, plain.length >> 3), target: 8 },
  { name: 'lines appended, compressed on the pool', deflate: deflatePooled, target: 25 },
]

export const benchAppend = async (): Promise<readonly Row[]> => {
  const rows: Row[] = []
  for (const one of cases) rows.push(...(await compare(one)))
  return rows
}

const compare = async ({ name, deflate, target }: (typeof cases)[number]): Promise<readonly Row[]> => {
  const pairs: { readonly bare: number; readonly appended: number }[] = []
  for (let round = -warmUps; round < rounds; round++) {
    const bare = await nsPerLine(splitBare)
    const appended = await nsPerLine(() => append(deflate))
    if (round >= 0) pairs.push({ bare, appended })
  }
  const ratio = median(pairs.map(({ bare, appended }) => appended / bare))
  const value = median(pairs.map(({ appended }) => appended))
  return [
    { name: `bare splitting, beside ${name}`, value: median(pairs.map(({ bare }) => bare)), unit: 'ns/line' },
    { name, value, unit: 'ns/line', ratio, target, ok: ratio <= target },
    { name: `${name}, a second`, value: 1e3 / value, unit: 'M lines' },
  ]
}

const nsPerLine = async (run: () => number | Promise<number>): Promise<number> => {
  const startedAt = systemClock.monotonic()
  const lines = await run()
  const tookMs = systemClock.monotonic() - startedAt
  if (Math.abs(lines - linesPerRound) > 1) throw new Error(`${lines} of ${linesPerRound} lines came out`)
  return (tookMs * 1e6) / linesPerRound
}

const splitBare = (): number => {
  let lines = 0
  for (let n = 0; n < chunksPerRound; n++) {
    const chunk = chunks[n % chunks.length] as Buffer
    for (let at = chunk.indexOf(10); at >= 0; at = chunk.indexOf(10, at + 1)) lines += 1
  }
  return lines
}

const append = async (deflate: Deflate): Promise<number> => {
  let stored = 0
  const log = createAttemptLog(
    {
      clock: systemClock,
      random: systemRandom,
      emit: () => {},
      deflate,
      publish: async (items) => {
        for (const { sequence, endSequence } of items) stored += endSequence - sequence + 1
        await turn()
      },
    },
    executionOptions.parse({}),
    { jobId: 'bench', attempt: 1 },
  )
  log.start({ attempt: 1, workerId: 'bench' })
  for (let n = 0; n < chunksPerRound; n++) {
    const room = log.output('stdout', chunks[n % chunks.length] as Buffer)
    if (room !== undefined) await room
    else if (n % chunksPerTurn === 0) await turn()
  }
  const { output, end } = await log.finish({ exitCode: 0 })
  for (const { sequence, endSequence } of [...output, end]) stored += endSequence - sequence + 1
  // Without the start and the end.
  return stored - 2
}

const turn = () => new Promise((resolve) => setImmediate(resolve))

/** Lines as a busy server writes them, in chunks whose ends fall where they may. */
const chunks = (() => {
  const count = (5 * chunkBytes) / lineBytes
  const line = (n: number) =>
    `${String(n % 60).padStart(2, '0')}:${String(n % 1_000).padStart(3, '0')} INFO worker[${(n * 7_919) % 997}] request ${(n * 31_337) % 100_003} took ${(n * 17) % 311} ms`
      .padEnd(lineBytes - 1)
      .concat('\n')
  const text = Buffer.from(Array.from({ length: count }, (_, n) => line(n)).join(''))
  return Array.from({ length: 5 }, (_, n) => text.subarray(n * chunkBytes, (n + 1) * chunkBytes))
})()

if (argv[1] === fileURLToPath(import.meta.url)) {
  for (const row of await benchAppend()) console.log(formatRow(row))
}
