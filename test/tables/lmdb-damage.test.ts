import { closeSync, openSync, readFileSync, truncateSync, writeFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { doctor } from '../../src/tables/lmdb/doctor.ts'
import { loadEngine, openEnvironment, openTables } from '../../src/tables/lmdb/environment.ts'
import { lowestKey } from '../../src/tables/lmdb/keys.ts'
import { contractSchemas } from '../contract/tables.ts'
import { openAt, tempFolder } from './support/directory.ts'

let folder: ReturnType<typeof tempFolder>
let data: string
beforeEach(async () => {
  folder = tempFolder()
  data = join(folder.path, 'data.mdb')
  const tables = await openAt(folder.path)
  await tables.commit(
    Array.from({ length: 500 }, (_, n) => ({
      actions: [
        {
          kind: 'put',
          table: 'things',
          row: { thing_id: `t${n}`, text: `payload-${n}-${'x'.repeat(200)}`, colour: 'red', size: n },
        },
      ],
    })),
  )
  await tables.close()
})
afterEach(() => folder.remove())

const pageBytes = 4_096

/** Every place in the data file where the text stands. */
const places = (text: string): number[] => {
  const bytes = readFileSync(data)
  const found: number[] = []
  for (let at = bytes.indexOf(text); at >= 0; at = bytes.indexOf(text, at + 1)) found.push(at)
  expect(found.length).toBeGreaterThan(0)
  return found
}
const overwrite = (at: number, bytes: Uint8Array) => {
  const file = openSync(data, 'r+')
  writeSync(file, bytes, 0, bytes.length, at)
  closeSync(file)
}

describe('K04 a damaged directory', () => {
  test('a sound one is found sound', async () => {
    expect(await doctor(folder.path)).toEqual({ sound: true, rows: 500, problems: [] })
  })

  test('one flipped bit in a record is an error that names it, and every other record is read', async () => {
    for (const at of places('payload-77-')) overwrite(at + 8, Buffer.from('6'))
    const report = await doctor(folder.path)
    expect(report.problems).toEqual([expect.stringMatching(/TABLE_CORRUPT: things "t77"/)])
    const tables = await openAt(folder.path)
    const reading = tables.get('things', ['t77'])
    await expect(reading).rejects.toMatchObject({ code: 'TABLE_CORRUPT' })
    await expect(reading).rejects.toThrow(/things "t77"/)
    expect((await tables.get('things', ['t78']))?.['text']).toMatch(/^payload-78-/)
    const verdicts = await tables.commit([
      { actions: [{ kind: 'update', table: 'things', key: ['t77'], set: { n: 1 } }] },
      { actions: [{ kind: 'update', table: 'things', key: ['t78'], set: { n: 1 } }] },
    ])
    expect(verdicts.map(({ kind }) => kind)).toEqual(['failed', 'done'])
    await tables.close()
  })

  test('an index that does not say what the rows say is found', async () => {
    const environment = openEnvironment(await loadEngine(), folder.path, { mapBytes: pageBytes, readOnly: false })
    const entries = openTables(environment, contractSchemas)[0]?.indexes[0]?.entries
    const [first = ''] = entries?.getKeys({ start: lowestKey, limit: 1 }) ?? []
    entries?.removeSync(first)
    await environment.root.close()
    const report = await doctor(folder.path)
    expect(report.sound).toBe(false)
    expect(report.problems.join()).toMatch(/missing in index by_colour/)
  })

  test('a page of zeros is found', async () => {
    for (const at of places('payload-300-')) overwrite(at - (at % pageBytes), new Uint8Array(pageBytes))
    expect((await doctor(folder.path)).sound).toBe(false)
  })

  test.each([
    ['cut in the middle', () => truncateSync(data, 20 * pageBytes)],
    ['cut to its first page', () => truncateSync(data, pageBytes)],
    ['emptied', () => truncateSync(data, 0)],
    ['overwritten at its start', () => overwrite(0, new Uint8Array(2 * pageBytes))],
    [
      'no data file at all',
      () => writeFileSync(data, 'something else entirely, but long enough to look at'.repeat(200)),
    ],
  ])('a data file that was %s is refused with path and advice', async (_, damage) => {
    damage()
    const opening = openAt(folder.path)
    await expect(opening).rejects.toMatchObject({ code: 'DIRECTORY_DAMAGED', path: folder.path })
    await expect(opening).rejects.toThrow(/restore/)
    expect((await doctor(folder.path)).sound).toBe(false)
  })
})

test('K09 a backup taken while writing is a sound copy of one moment, held by nobody', async () => {
  const tables = await openAt(folder.path)
  let running = true
  let pairs = 0
  const writing = (async () => {
    while (running) {
      await tables.commit([
        {
          actions: [
            { kind: 'update', table: 'things', key: ['pair'], add: { n: 1 }, keep: true },
            { kind: 'put', table: 'lines', row: { log_id: 'pair', sequence: pairs + 1, bytes: Buffer.alloc(3_000) } },
          ],
        },
      ])
      pairs += 1
    }
  })()
  while (pairs < 20) await new Promise(setImmediate)
  const copy = join(folder.folder, 'copy')
  await tables.backup(copy)
  const pairsAfter = pairs
  running = false
  await writing
  await tables.close()
  expect(await doctor(copy)).toMatchObject({ sound: true })
  const opened = await openAt(copy)
  expect(opened.previous).toBeUndefined()
  const n = (await opened.get('things', ['pair']))?.['n'] as number
  expect(n).toBeGreaterThanOrEqual(20)
  expect(n).toBeLessThanOrEqual(pairsAfter + 1)
  const { entries } = await opened.query('lines', { partition: 'pair', descending: true, limit: 1 })
  expect(entries[0]?.['sequence']).toBe(n)
  await opened.close()
})
