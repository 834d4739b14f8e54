import { expect } from 'vitest'
import { createSeededRandom } from '../../../src/sim/seeded-random.ts'
import type { LmdbTables } from '../../../src/tables/lmdb.ts'
import { startChild } from './child.ts'
import { openAt, tempFolder } from './directory.ts'

const acknowledgedMax = 60

/** Kills a writing process `times` over, each time at another point, and looks at what it left. */
export const surviveKills = async (times: number, seed: number): Promise<void> => {
  const random = createSeededRandom(seed)
  const { path, remove } = tempFolder()
  const acknowledged: number[] = []
  for (let time = 0; time < times; time++) {
    const child = startChild('write-for-ever.ts', [path, `${time * 100_000}`])
    let left = Math.floor(random.next() * acknowledgedMax)
    for await (const line of child.lines) {
      if (line !== 'open') acknowledged.push(Number(line))
      left -= 1
      if (left < 0) break
    }
    await child.kill()
    const tables = await openAt(path)
    expect(tables.previous?.died).toBe('proved')
    await expectWhole(tables, acknowledged, time * 100_000)
    await tables.close()
  }
  remove()
}

/** Every acknowledged pair is there, and of the last run every row that is there has its other half. */
const expectWhole = async (tables: LmdbTables, acknowledged: readonly number[], from: number): Promise<void> => {
  const things = await tables.getMany(
    'things',
    acknowledged.map((n) => [`t${n}`]),
  )
  const lines = await tables.getMany(
    'lines',
    acknowledged.map((n) => ['log', n]),
  )
  expect(things.map((row) => row?.['n'])).toEqual(acknowledged)
  expect(lines.map((row) => row?.['sequence'])).toEqual(acknowledged)
  const { entries } = await tables.query('lines', { partition: 'log', from, limit: 1_000 })
  for (const { sequence, payload } of entries) {
    const n = sequence as number
    expect(payload).toHaveLength(1 + ((n * 7919) % 6_000))
    expect((await tables.get('things', [`t${n}`]))?.['n']).toBe(n)
  }
}
