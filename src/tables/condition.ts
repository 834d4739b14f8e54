// The meaning of conditions and actions, as pure functions over one row. Adapters that decide in this process share it;
// an adapter over a service must come to the same answers, and the contract suite compares them.

import { assert, unreachable } from '../kernel/assert.ts'
import type { Action, Condition, Key, Row, TableSchema, Value, Write } from './port.ts'

/** Whether a condition holds for the row as it stands, undefined being no row. */
export const holds = (condition: Condition, row: Row | undefined): boolean => {
  switch (condition.test) {
    case 'absent':
      return row === undefined
    case 'present':
      return row !== undefined
    case 'has':
      return row?.[condition.attribute] !== undefined
    case 'lacks':
      return row?.[condition.attribute] === undefined
    // Loops and no closures: this runs for every write.
    case 'all':
      for (const part of condition.of) if (!holds(part, row)) return false
      return true
    case 'any':
      for (const part of condition.of) if (holds(part, row)) return true
      return false
    case '=':
      return sameValue(row?.[condition.attribute], condition.value)
    case '<':
    case '<=':
    case '>':
    case '>=':
      return compares(condition.test, row?.[condition.attribute], condition.value)
    default:
      return unreachable(condition)
  }
}

const sameValue = (stored: Value | undefined, value: Value): boolean =>
  stored === value ||
  (stored instanceof Uint8Array && value instanceof Uint8Array && Buffer.compare(stored, value) === 0)

/** Values of different types never compare; bytes and booleans have no order that we use. */
const compares = (test: '<' | '<=' | '>' | '>=', stored: Value | undefined, value: Value): boolean => {
  const ordered =
    (typeof stored === 'number' && typeof value === 'number') ||
    (typeof stored === 'string' && typeof value === 'string')
  if (!ordered) return false
  switch (test) {
    case '<':
      return stored < value
    case '<=':
      return stored <= value
    case '>':
      return stored > value
    case '>=':
      return stored >= value
  }
}

/** The row after the action, undefined if there is none. The condition is the caller's business. */
export const applyAction = (schema: TableSchema, action: Action, row: Row | undefined): Row | undefined => {
  switch (action.kind) {
    case 'put':
      return action.row
    case 'delete':
      return undefined
    case 'check':
      return row
    case 'update': {
      const next: Record<string, Value> = { ...(row ?? keyAttributes(schema, action.key)), ...action.set }
      for (const attribute in action.add) {
        const before = next[attribute] ?? 0
        if (typeof before !== 'number') assert(false, `${schema.name}.${attribute} is not a number`)
        next[attribute] = before + (action.add[attribute] as number)
      }
      return action.remove?.some((attribute) => next[attribute] !== undefined) ? without(next, action.remove) : next
    }
    default:
      return unreachable(action)
  }
}

/** A copy, because an object from which something was deleted is slow for ever after. */
const without = (row: Row, attributes: readonly string[]): Row => {
  const rest: Record<string, Value> = {}
  for (const name in row) if (!attributes.includes(name)) rest[name] = row[name] as Value
  return rest
}

export const keyOfRow = (schema: TableSchema, row: Row): Key => {
  const partition = row[schema.partition]
  // Sentences are made only when they are needed: this runs for every write.
  if (typeof partition !== 'string' || partition === '')
    assert(false, `a row of ${schema.name} without ${schema.partition}`)
  if (!schema.sort) return [partition]
  const sort = row[schema.sort.attribute]
  if (typeof sort !== schema.sort.type) assert(false, `a row of ${schema.name} without ${schema.sort.attribute}`)
  return [partition, sort as number | string]
}

export const keyOfAction = (schema: TableSchema, action: Action): Key =>
  action.kind === 'put' ? keyOfRow(schema, action.row) : action.key

const keyAttributes = (schema: TableSchema, key: Key): Row =>
  schema.sort && key[1] !== undefined
    ? { [schema.partition]: key[0], [schema.sort.attribute]: key[1] }
    : { [schema.partition]: key[0] }

/** One string per row of all tables, for maps and sets. The parts cannot run into each other: a table's name has no NUL. */
export const rowId = (table: string, key: Key): string =>
  key[1] === undefined ? `${table}\0${key[0]}` : `${table}\0${key[0]}\0${key[1]}`

/** Schemas by name; asking for a table that nobody declared is a bug. */
export const createCatalogue = (schemas: readonly TableSchema[]) => {
  const byName = new Map(schemas.map((schema) => [schema.name, schema]))
  assert(byName.size === schemas.length, 'two tables of one name')
  return (table: string): TableSchema => {
    const schema = byName.get(table)
    assert(schema, `no table '${table}' was declared`)
    return schema
  }
}

/** A write that breaks the port's rules is a bug of the caller, whatever the backend would say. */
export const assertWellFormed = (schemaOf: (table: string) => TableSchema, { actions, merge }: Write): void => {
  assert(actions.length > 0, 'a write without actions')
  for (let index = 0; index < actions.length; index++) {
    const action = actions[index] as Action
    schemaOf(action.table)
    // Services disagree about whether such an update of a row that is not there creates one.
    const vague = action.kind === 'update' && !action.set && !action.add && !action.if
    assert(!vague, 'an update that only removes must say that the row is there')
    // Pairs, and no set: nearly all writes have a handful of actions.
    for (let before = 0; before < index; before++) {
      assert(!isSameRow(schemaOf, actions[before] as Action, action), 'two actions of one write on the same row')
    }
  }
  const [only] = actions
  const mergeable = actions.length === 1 && only?.kind === 'update' && only.if === undefined
  assert(!merge || mergeable, 'only a single update without a condition may be merged')
}

const isSameRow = (schemaOf: (table: string) => TableSchema, a: Action, b: Action): boolean => {
  if (a.table !== b.table) return false
  const schema = schemaOf(a.table)
  const [one, other] = [keyOfAction(schema, a), keyOfAction(schema, b)]
  return one[0] === other[0] && one[1] === other[1]
}
