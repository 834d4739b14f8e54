import type { AttributeValue } from '@aws-sdk/client-dynamodb'
import { assert } from '../../kernel/assert.ts'
import { keyOfRow, rowId } from '../condition.ts'
import { TableCorrupt } from '../faults.ts'
import type { Action, Key, Row, TableSchema, Value } from '../port.ts'

/** A row as the service spells it. */
export type Item = Record<string, AttributeValue>

export const toItem = (row: Row): Item =>
  Object.fromEntries(Object.entries(row).map(([attribute, value]) => [attribute, toCell(value)]))

export const fromItem = (item: Item): Row =>
  Object.fromEntries(Object.entries(item).map(([attribute, cell]) => [attribute, fromCell(attribute, cell)]))

export const toCell = (value: Value): AttributeValue => {
  if (typeof value === 'string') return { S: value }
  if (typeof value === 'boolean') return { BOOL: value }
  if (typeof value !== 'number') return { B: value }
  assert(Number.isFinite(value), `${value} cannot be stored`)
  return { N: String(value) }
}

const fromCell = (attribute: string, cell: AttributeValue): Value => {
  if (cell.S !== undefined) return cell.S
  if (cell.N !== undefined) return Number(cell.N)
  if (cell.BOOL !== undefined) return cell.BOOL
  if (cell.B !== undefined) return cell.B
  throw new TableCorrupt(`'${attribute}' holds a type of value that we never write`)
}

/** The key attributes alone. */
export const keyRow = (schema: TableSchema, [partition, sort]: Key): Row => {
  if (!schema.sort) return { [schema.partition]: partition }
  assert(sort !== undefined, `a key of ${schema.name} without ${schema.sort.attribute}`)
  return { [schema.partition]: partition, [schema.sort.attribute]: sort }
}

/** One string per row, the same for an action and for what the service says of the row. */
export const actionId = (schema: TableSchema, action: Action): string =>
  rowId(schema.name, keyOfRow(schema, action.kind === 'put' ? action.row : keyRow(schema, action.key)))

export const itemId = (schema: TableSchema, item: Item): string => {
  const names = [schema.partition, ...(schema.sort ? [schema.sort.attribute] : [])]
  const key = Object.fromEntries(Object.entries(item).filter(([attribute]) => names.includes(attribute)))
  return rowId(schema.name, keyOfRow(schema, fromItem(key)))
}

/** The size of a row as the service counts it towards its limits and its bill. */
export const rowBytes = (row: Row): number =>
  Object.entries(row).reduce((sum, [attribute, value]) => sum + Buffer.byteLength(attribute) + cellBytes(value), 0)

const cellBytes = (value: Value): number => {
  if (typeof value === 'string') return Buffer.byteLength(value)
  if (typeof value === 'boolean') return 1
  return typeof value === 'number' ? numberBytes(value) : value.byteLength
}

/** A number is a byte, a byte for a minus, and a byte per pair of significant digits, paired from the decimal point. */
const numberBytes = (value: number): number => {
  if (value === 0) return 1
  const [mantissa = '', exponent = '0'] = Math.abs(value).toExponential().split('e')
  const digits = mantissa.replace('.', '').length
  const lonelyFirst = Number(exponent) % 2 === 0 ? 1 : 0
  return 1 + (value < 0 ? 1 : 0) + lonelyFirst + Math.ceil((digits - lonelyFirst) / 2)
}

/** The size of a row on the wire, in the JSON that is sent. */
export const wireBytes = (row: Row): number =>
  Object.entries(row).reduce((sum, [attribute, value]) => sum + jsonBytes(attribute) + wireCellBytes(value) + 2, 1)

const wireCellBytes = (value: Value): number => {
  if (typeof value === 'string') return '{"S":}'.length + jsonBytes(value)
  if (typeof value === 'boolean') return `{"BOOL":${value}}`.length
  if (typeof value === 'number') return `{"N":"${value}"}`.length
  return '{"B":""}'.length + 4 * Math.ceil(value.byteLength / 3)
}

const jsonBytes = (text: string): number => Buffer.byteLength(JSON.stringify(text))
