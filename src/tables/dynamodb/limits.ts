import { assert } from '../../kernel/assert.ts'
import { keyOfAction } from '../condition.ts'
import { TableLimit } from '../faults.ts'
import type { Action, Row, TableLimits, TableSchema, Value, Write } from '../port.ts'
import { keyRow, rowBytes } from './row.ts'

const KiB = 1024
const MiB = 1024 * KiB

/** What the service takes, as it documents it. The one place where these numbers stand. */
export const vendorLimits = {
  rowBytes: 400 * KiB,
  partitionBytes: 2 * KiB,
  sortBytes: KiB,
  /** The magnitude of numbers other than 0. */
  number: { least: 1e-130, most: 9.99e125 },
  batchGet: { items: 100 },
  /** Bytes as they travel, encoding and all. */
  batchWrite: { items: 25, bytes: 16 * MiB },
  /** The token makes a repeated transaction harmless for this long. */
  transaction: { actions: 100, bytes: 4 * MiB, tokenMs: 10 * 60_000 },
} as const

export const dynamodbLimits: TableLimits = {
  rowBytes: vendorLimits.rowBytes,
  actions: vendorLimits.transaction.actions,
  writeBytes: vendorLimits.transaction.bytes,
  groups: 4,
  groupWrites: 100,
}

/** The first limit that a write passes, found before anything is sent. */
export const limitOf = (schemaOf: (table: string) => TableSchema, write: Write): TableLimit | undefined => {
  const { actions, bytes } = vendorLimits.transaction
  const first = write.actions[0]
  assert(first, 'a write without actions')
  if (write.actions.length > actions) return passed(first.table, 'a write', `${write.actions.length} actions`, actions)
  let total = 0
  for (const action of write.actions) {
    const schema = schemaOf(action.table)
    const row = writtenRow(schema, action)
    const size = rowBytes(row)
    const fault = limitOfCells(schema, row) ?? limitOfRow(schema, size)
    if (fault) return fault
    total += size
  }
  return write.actions.length > 1 && total > bytes ? passed(first.table, 'a write', `${total} bytes`, bytes) : undefined
}

/** What an action sends of its row. An update may make the row too large all the same; then the service refuses it. */
const writtenRow = (schema: TableSchema, action: Action): Row => {
  if (action.kind === 'put') return action.row
  const key = keyRow(schema, keyOfAction(schema, action))
  return action.kind === 'update' ? { ...key, ...action.set, ...action.add } : key
}

const limitOfRow = (schema: TableSchema, size: number): TableLimit | undefined =>
  size > vendorLimits.rowBytes ? passed(schema.name, 'a row', `${size} bytes`, vendorLimits.rowBytes) : undefined

const limitOfCells = (schema: TableSchema, row: Row): TableLimit | undefined => {
  for (const [attribute, value] of Object.entries(row)) {
    const bytesMax = keyBytesMax(schema, attribute)
    const size = typeof value === 'string' ? Buffer.byteLength(value) : 0
    if (bytesMax !== undefined && size > bytesMax) return passed(schema.name, attribute, `${size} bytes`, bytesMax)
    if (!isStorable(value)) return passed(schema.name, attribute, String(value), vendorLimits.number.most)
  }
  return undefined
}

const keyBytesMax = (schema: TableSchema, attribute: string): number | undefined => {
  const keys = [schema, ...Object.values(schema.indexes)]
  if (keys.some((key) => key.sort?.attribute === attribute)) return vendorLimits.sortBytes
  return keys.some((key) => key.partition === attribute) ? vendorLimits.partitionBytes : undefined
}

const isStorable = (value: Value): boolean => {
  if (typeof value !== 'number' || value === 0) return true
  assert(Number.isFinite(value), `${value} cannot be stored`)
  return Math.abs(value) >= vendorLimits.number.least && Math.abs(value) <= vendorLimits.number.most
}

const passed = (table: string, what: string, size: string, limit: number): TableLimit =>
  new TableLimit(`${table}: ${what} of ${size} passes the limit of ${limit}`, { field: what, limit })
