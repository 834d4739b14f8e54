// Reads everything in a directory and compares. Run it through doctor.ts: over a damaged map it may end its process.

import type { Transaction } from 'lmdb'
import { isFault } from '../../kernel/fault.ts'
import { type Bytes, isComplete, loadEngine, openEnvironment, openTables, type Table } from './environment.ts'
import { readFormat } from './format.ts'
import { checkHeader } from './header.ts'
import { encodeExpiry, encodePlace, lowestKey } from './keys.ts'
import { rowOf } from './read.ts'
import { secondOf } from './writer.ts'

export interface DirectoryReport {
  readonly sound: boolean
  readonly rows: number
  /** In words, the first hundred. */
  readonly problems: readonly string[]
}

const problemsMax = 100
const mapBytes = 1024 ** 2

/** Every record matches its checksum and its key, and indexes hold exactly what the rows say. Changes nothing. */
export const checkDirectory = async (path: string): Promise<DirectoryReport> => {
  const problems: string[] = []
  const report = (problem: string) => {
    if (problems.length < problemsMax) problems.push(problem)
  }
  let rows = 0
  try {
    const state = await checkHeader(path)
    if (state === 'absent' || state === 'empty') report(`the data file is ${state}`)
    else rows = await checkTables(path, report)
  } catch (error) {
    report(describe(error))
  }
  return { sound: problems.length === 0, rows, problems }
}

const checkTables = async (path: string, report: (problem: string) => void): Promise<number> => {
  const environment = openEnvironment(await loadEngine(), path, { mapBytes, readOnly: true })
  try {
    const format = isComplete(environment) ? readFormat(environment) : undefined
    if (!format) {
      report('the data file has no format')
      return 0
    }
    const tables = openTables(environment, format.schemas)
    const snapshot = environment.root.useReadTransaction()
    const rows = tables.map((table) => checkTable(table, snapshot, report))
    snapshot.done()
    return rows.reduce((sum, count) => sum + count, 0)
  } finally {
    await environment.root.close()
  }
}

/** How many rows the table has. */
const checkTable = (table: Table, transaction: Transaction, report: (problem: string) => void): number => {
  const { name } = table.schema
  const expected = new Map<Bytes, number>()
  const expect = (entries: Bytes, place: string | undefined, what: string) => {
    if (place === undefined) return
    expected.set(entries, (expected.get(entries) ?? 0) + 1)
    if (entries.getBinary(place, { transaction }) === undefined) report(`${name}: a row is missing in ${what}`)
  }
  let rows = 0
  let unreadable = 0
  try {
    for (const { key, value } of table.rows.getRange({ start: lowestKey, transaction })) {
      rows += 1
      try {
        const row = rowOf(table, key, value, value.length)
        for (const { name: index, index: schema, entries } of table.indexes)
          expect(entries, encodePlace(schema, row, key), `index ${index}`)
        const second = secondOf(table, row)
        if (table.expiry && second !== undefined)
          expect(table.expiry.entries, encodeExpiry(second, key), 'the order of expiry')
      } catch (error) {
        unreadable += 1
        report(describe(error))
      }
    }
    // What an unreadable row has in the indexes cannot be known, so only whole tables can be counted.
    if (unreadable === 0) countEntries(table, expected, transaction, report)
  } catch (error) {
    report(`${name}: ${describe(error)}`)
  }
  return rows
}

const countEntries = (
  table: Table,
  expected: ReadonlyMap<Bytes, number>,
  transaction: Transaction,
  report: (problem: string) => void,
): void => {
  const databases = [...table.indexes.map(({ entries }) => entries), ...(table.expiry ? [table.expiry.entries] : [])]
  for (const entries of databases) {
    const count = [...entries.getKeys({ start: lowestKey, transaction })].length
    if (count !== (expected.get(entries) ?? 0))
      report(`${table.schema.name}: an index has ${count} entries for ${expected.get(entries) ?? 0} rows`)
  }
}

const describe = (error: unknown): string =>
  isFault(error) ? `${error.code}: ${error.message}` : error instanceof Error ? error.message : String(error)
