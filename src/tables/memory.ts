// Tables in memory: the model that every other adapter is measured by. Decides at once, answers in a later microtask.

import { assert } from '../kernel/assert.ts'
import { applyAction, assertWellFormed, createCatalogue, holds, keyOfAction, keyOfRow, rowId } from './condition.ts'
import { TableClosed } from './faults.ts'
import type { Change, Key, LocalTables, Page, Range, Row, TableLimits, TableSchema, Verdict, Write } from './port.ts'
import { createSorted, type Sorted } from './sorted.ts'

type SortValue = number | string
/** Where a row stands in an index: its sort value, then its key, so that no two rows share a place. */
type Place = readonly [sort: SortValue, key: Key]

interface Table {
  readonly schema: TableSchema
  readonly rows: Map<string, Sorted<SortValue, Row>>
  readonly indexes: Map<string, Map<string, Sorted<Place, Key>>>
  readonly listeners: Set<(changes: readonly Change[]) => void>
}

const memoryLimits: TableLimits = {
  rowBytes: 400 * 1024,
  actions: 100,
  writeBytes: 4 * 1024 * 1024,
  groups: 1,
  groupWrites: 1_000,
}

export const createMemoryTables = (schemas: readonly TableSchema[]): LocalTables => {
  const schemaOf = createCatalogue(schemas)
  const tables = new Map(schemas.map((schema) => [schema.name, createTable(schema)]))
  let closed = false

  const open = (table: string): Table => {
    if (closed) throw new TableClosed('the tables were closed')
    schemaOf(table)
    return tables.get(table) as Table
  }

  /** All conditions first, then all changes: a write that is refused has touched nothing. */
  const decide = (write: Write, changed: Map<string, Change[]>): Verdict => {
    const before = write.actions.map((action) => read(open(action.table), keyOfAction(schemaOf(action.table), action)))
    const refused = write.actions.findIndex((action, index) => action.if && !holds(action.if, before[index]))
    if (refused >= 0) return { kind: 'refused', action: refused, row: before[refused] }
    const after = write.actions.map((action, index) => {
      if (action.kind === 'check') return undefined
      const table = open(action.table)
      const key = keyOfAction(table.schema, action)
      const row = applyAction(table.schema, action, before[index])
      replace(table, key, before[index], row)
      const list = changed.get(action.table)
      if (list) list.push({ key, row })
      else changed.set(action.table, [{ key, row }])
      return row
    })
    return after[0] ? { kind: 'done', row: after[0] } : { kind: 'done' }
  }

  const commit = (writes: readonly Write[]): readonly Verdict[] => {
    for (const write of writes) assertWellFormed(schemaOf, write)
    const changed = new Map<string, Change[]>()
    const verdicts = writes.map((write) => decide(write, changed))
    for (const [name, changes] of changed) {
      for (const listener of (tables.get(name) as Table).listeners) listener(changes)
    }
    return verdicts
  }

  return {
    limits: memoryLimits,
    get: async (table, key) => read(open(table), key),
    getMany: async (table, keys) => keys.map((key) => read(open(table), key)),
    query: async (table, range) => queryRows(open(table), range),
    lookup: async (table, index, range) => lookupKeys(open(table), index, range),
    commit: async (writes) => {
      if (closed) throw new TableClosed('the tables were closed')
      return commit(writes)
    },
    watch: (table, listener) => {
      const { listeners } = open(table)
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
    purge: async (nowSeconds, limit) => {
      const expired = [...tables.values()].flatMap((table) => expiredKeys(table, nowSeconds)).slice(0, limit)
      commit(expired.map(({ table, key }) => ({ actions: [{ kind: 'delete', table, key }] })))
      return expired.length
    },
    close: async () => {
      closed = true
    },
  }
}

const createTable = (schema: TableSchema): Table => ({
  schema,
  rows: new Map(),
  indexes: new Map(Object.keys(schema.indexes).map((name) => [name, new Map()])),
  listeners: new Set(),
})

const compareSort = (a: SortValue, b: SortValue): number => (a < b ? -1 : a > b ? 1 : 0)
const comparePlace = (a: Place, b: Place): number =>
  compareSort(a[0], b[0]) || compareSort(a[1][0], b[1][0]) || compareSort(a[1][1] ?? 0, b[1][1] ?? 0)

const read = (table: Table, key: Key): Row | undefined => table.rows.get(key[0])?.get(key[1] ?? 0)

const replace = (table: Table, key: Key, before: Row | undefined, after: Row | undefined): void => {
  if (after) assert(rowId('', keyOfRow(table.schema, after)) === rowId('', key), 'a write changed the key of its row')
  const partition = table.rows.get(key[0]) ?? createSorted<SortValue, Row>(compareSort)
  if (after) {
    partition.set(key[1] ?? 0, after)
    table.rows.set(key[0], partition)
  } else {
    partition.delete(key[1] ?? 0)
    if (partition.size === 0) table.rows.delete(key[0])
  }
  for (const [name, index] of table.indexes) {
    const { partition: attribute, sort } = table.schema.indexes[name] as TableSchema['indexes'][string]
    const placeOf = (row: Row | undefined) => {
      const [group, at] = [row?.[attribute], row?.[sort.attribute]]
      return group === undefined || at === undefined ? undefined : { group: String(group), at: at as SortValue }
    }
    const [old, fresh] = [placeOf(before), placeOf(after)]
    if (old) index.get(old.group)?.delete([old.at, key])
    if (!fresh) continue
    const entries = index.get(fresh.group) ?? createSorted<Place, Key>(comparePlace)
    entries.set([fresh.at, key], key)
    index.set(fresh.group, entries)
  }
}

const queryRows = (table: Table, range: Range): Page<Row> => {
  const rows = table.rows.get(range.partition)
  const found =
    rows?.range({ ...range, ...(range.after === undefined ? {} : { after: decode<SortValue>(range.after) }) }) ?? []
  return page(found, range.limit)
}

/** The lowest and the highest key there could be, so that a bound on the sort value alone takes every key with it. */
const lowest: Key = ['', Number.NEGATIVE_INFINITY]
const highest: Key = ['\u{10ffff}', '\u{10ffff}']

const lookupKeys = (table: Table, index: string, range: Range): Page<Key> => {
  const indexes = table.indexes.get(index)
  assert(indexes, `no index '${index}' on ${table.schema.name}`)
  const { from, to, after, ...rest } = range
  const found =
    indexes.get(range.partition)?.range({
      ...rest,
      ...(from === undefined ? {} : { from: [from, lowest] as const }),
      ...(to === undefined ? {} : { to: [to, highest] as const }),
      ...(after === undefined ? {} : { after: decode<Place>(after) }),
    }) ?? []
  return page(found, range.limit)
}

const page = <K, V>(found: readonly (readonly [K, V])[], limit: number): Page<V> => {
  const entries = found.map(([, value]) => value)
  const last = found.at(-1)
  return last && found.length === limit ? { entries, next: encode(last[0]) } : { entries }
}

const encode = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url')
const decode = <T>(cursor: string): T => JSON.parse(Buffer.from(cursor, 'base64url').toString()) as T

const expiredKeys = (table: Table, nowSeconds: number): { table: string; key: Key; ttl: number }[] => {
  const attribute = table.schema.ttl
  if (!attribute) return []
  const rows = [...table.rows.values()].flatMap((partition) =>
    partition.range({ limit: partition.size }).map(([, row]) => row),
  )
  return rows
    .flatMap((row) => {
      const ttl = row[attribute]
      const rubbish = typeof ttl === 'number' && ttl < nowSeconds
      return rubbish ? [{ table: table.schema.name, key: keyOfRow(table.schema, row), ttl }] : []
    })
    .sort((a, b) => a.ttl - b.ttl)
}
