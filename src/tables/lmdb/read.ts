import type { Transaction } from 'lmdb'
import { assert } from '../../kernel/assert.ts'
import { TableCorrupt, TableUnavailable } from '../faults.ts'
import type { Key, Page, Range, Row } from '../port.ts'
import type { Bytes, Table, TableIndex } from './environment.ts'
import { type Bounds, decodeKey, encodeKey, indexBounds, keyOfPlace, lowestKey, tableBounds } from './keys.ts'
import { decodeRecord } from './record.ts'

/**
 * Committed rows. While a commit is under way the reads stay with the state before it, so that nobody sees a row go back:
 * kept rows and the map file change in the same turn.
 */
export interface Reader {
  /** From now on reads see what is committed now. */
  pin(snapshot: Transaction): void
  unpin(): void
  get(table: Table, key: Key): Row | undefined
  /** The row as it lies in the map file, whatever is kept. */
  stored(table: Table, key: string): Row | undefined
  query(table: Table, range: Range): Page<Row>
  lookup(table: Table, index: TableIndex, range: Range): Page<Key>
  /** The first entries of a database that lie below `high`. */
  first(entries: Bytes, high: string, limit: number): readonly string[]
}

const pageBytesMax = 4 * 1024 * 1024

export const createReader = (): Reader => {
  let snapshot: Transaction | undefined
  const at = () => (snapshot ? { transaction: snapshot } : {})

  const stored = (table: Table, key: string): Row | undefined =>
    guarded(table, key, () => {
      const record = table.rows.getBinaryFast(key, at())
      return record && rowOf(table, key, record, record.length)
    })

  return {
    pin: (next) => {
      snapshot = next
    },
    unpin: () => {
      snapshot?.done()
      snapshot = undefined
    },
    stored,
    get: (table, key) => {
      const bytes = encodeKey(table.schema, key)
      const cell = table.cells.get(bytes)
      return cell ? cell.row : stored(table, bytes)
    },
    query: (table, range) => {
      const bounds = tableBounds(table.schema.sort, range.partition, range.from, range.to)
      return guarded(table, range.partition, () => {
        const entries: Row[] = []
        let bytes = 0
        let last: string | undefined
        for (const { key, value } of table.rows.getRange(span(bounds, range, at()))) {
          entries.push(rowOf(table, key, value, value.length))
          last = key
          bytes += value.length
          if (bytes > pageBytesMax) return { entries, next: encodeCursor(key) }
        }
        return page(entries, range.limit, last)
      })
    },
    lookup: (table, index, range) => {
      const { sort } = index.index
      const bounds = indexBounds(sort, range.partition, range.from, range.to)
      return guarded(table, range.partition, () => {
        const places = [...index.entries.getKeys(span(bounds, range, at()))]
        const keys = places.map((place) => decodeKey(table.schema, keyOfPlace(sort, place)))
        return page(keys, range.limit, places.at(-1))
      })
    },
    first: (entries, high, limit) => [...entries.getKeys({ start: lowestKey, end: high, limit, ...at() })],
  }
}

/** The row of a record that lies under a key. Throws TableCorrupt for one that is not what was written. */
export const rowOf = (table: Table, key: string, record: Buffer, length: number): Row => {
  const decoded = decodeRecord(record, length)
  if ('damage' in decoded) throw corrupt(table, key, decoded.damage)
  const { partition, sort } = table.schema
  const [expected, expectedSort] = decodeKey(table.schema, key)
  const row = decoded.row
  if (row[partition] !== expected || (sort && row[sort.attribute] !== expectedSort))
    throw corrupt(table, key, 'it lies under the key of another row')
  return row
}

const corrupt = (table: Table, key: string, why: string, cause?: unknown): TableCorrupt =>
  new TableCorrupt(`${table.schema.name} ${printable(key)}: ${why}`, { cause })

/** Keys are bytes; those that a person cannot read are shown as numbers. */
const printable = (key: string): string => JSON.stringify(key).replace(/[^\x20-\x7e]/g, (byte) => `\\x${hex(byte)}`)
const hex = (byte: string): string => byte.charCodeAt(0).toString(16).padStart(2, '0')

/** Errors of the library become faults here and nowhere else on the way of a read. */
const guarded = <T>(table: Table, key: string, read: () => T): T => {
  try {
    return read()
  } catch (error) {
    const code = (error as { code?: unknown }).code
    if (typeof code !== 'number') throw error
    if (damageCodes.has(code)) throw corrupt(table, key, 'a page of the data file is broken', error)
    throw new TableUnavailable(`reading ${table.schema.name} failed`, 'none', { cause: error })
  }
}

/** MDB_PAGE_NOTFOUND, MDB_CORRUPTED, MDB_PANIC, MDB_INVALID, MDB_BAD_TXN. */
export const damageCodes: ReadonlySet<number> = new Set([-30797, -30796, -30795, -30793, -30782])

const page = <Entry>(entries: readonly Entry[], limit: number, last: string | undefined): Page<Entry> =>
  last !== undefined && entries.length === limit ? { entries, next: encodeCursor(last) } : { entries }

const encodeCursor = (key: string): string => Buffer.from(key, 'latin1').toString('base64url')

/** LMDB's own terms for a range: it starts at the far end when it runs backwards. */
const span = (bounds: Bounds, range: Range, at: { transaction?: Transaction }) => {
  assert(range.limit >= 0, `a range of ${range.limit}`)
  const after = range.after === undefined ? undefined : Buffer.from(range.after, 'base64url').toString('latin1')
  assert(after === undefined || (after >= bounds.low && after < bounds.high), 'a cursor of another range')
  return range.descending
    ? {
        start: after ?? bounds.high,
        exclusiveStart: true,
        end: bounds.low,
        inclusiveEnd: true,
        reverse: true,
        limit: range.limit,
        ...at,
      }
    : { start: after ?? bounds.low, exclusiveStart: after !== undefined, end: bounds.high, limit: range.limit, ...at }
}
