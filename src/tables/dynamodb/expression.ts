import { assert, unreachable } from '../../kernel/assert.ts'
import type { Action, Condition, Range, SortKey, TableSchema, Value } from '../port.ts'
import { type Item, toCell } from './row.ts'

/** The part of a request that explains its placeholders. The service refuses an empty explanation. */
interface Placeholders {
  ExpressionAttributeNames?: Record<string, string>
  ExpressionAttributeValues?: Item
}

/** Every name and value goes through a placeholder: then no attribute can be a reserved word, and no value can be code. */
export interface Naming {
  name(attribute: string): string
  value(value: Value): string
  placeholders(): Placeholders
}

export const createNaming = (): Naming => {
  const names = new Map<string, string>()
  const values: Item = {}
  let valueCount = 0
  return {
    name: (attribute) => {
      const known = names.get(attribute)
      if (known) return known
      const placeholder = `#${names.size}`
      names.set(attribute, placeholder)
      return placeholder
    },
    value: (value) => {
      const placeholder = `:${valueCount++}`
      values[placeholder] = toCell(value)
      return placeholder
    },
    placeholders: () => ({
      ...(names.size === 0
        ? {}
        : {
            ExpressionAttributeNames: Object.fromEntries([...names].map(([name, placeholder]) => [placeholder, name])),
          }),
      ...(valueCount === 0 ? {} : { ExpressionAttributeValues: values }),
    }),
  }
}

/** A condition of the port in the service's language. Brackets only around two or more: it refuses brackets it can do without. */
export const conditionText = (schema: TableSchema, condition: Condition, naming: Naming): string => {
  switch (condition.test) {
    case 'absent':
      return `attribute_not_exists(${naming.name(schema.partition)})`
    case 'present':
      return `attribute_exists(${naming.name(schema.partition)})`
    case 'has':
      return `attribute_exists(${naming.name(condition.attribute)})`
    case 'lacks':
      return `attribute_not_exists(${naming.name(condition.attribute)})`
    case '=':
      return `${naming.name(condition.attribute)} = ${naming.value(condition.value)}`
    case '<':
    case '<=':
    case '>':
    case '>=':
      return isOrdered(condition.value)
        ? `${naming.name(condition.attribute)} ${condition.test} ${naming.value(condition.value)}`
        : conditionText(schema, { test: 'any', of: [] }, naming)
    case 'all':
      return joined(condition.of, 'AND', 'OR')
    case 'any':
      return joined(condition.of, 'OR', 'AND')
    default:
      return unreachable(condition)
  }

  function joined(parts: readonly Condition[], word: string, otherWord: string): string {
    const texts = parts.map((part) => conditionText(schema, part, naming))
    if (texts.length === 1) return texts[0] as string
    if (texts.length > 1) return `(${texts.join(` ${word} `)})`
    // The language has no words for true and false: of nothing, all hold and none does.
    const partition = naming.name(schema.partition)
    return `(attribute_exists(${partition}) ${otherWord} attribute_not_exists(${partition}))`
  }
}

/** Bytes and booleans have no order that the port knows. */
const isOrdered = (value: Value): boolean => typeof value === 'number' || typeof value === 'string'

/**
 * An attribute that no row has. Removing it is how the service is told to change nothing. It does not create a row then,
 * nor with any update that only removes; its stand-ins do.
 */
const nowhere = '\u{2205}'

/** What an update changes. The service refuses to hear of an attribute twice, so what a later step undoes is not said. */
export const updateText = (action: Action & { kind: 'update' }, naming: Naming): string => {
  const removed = new Set(action.remove)
  const { set, add } = foldedChanges(action, removed)
  const names = removed.size + set.length + add.length === 0 ? [nowhere] : [...removed]
  return [
    ...clause(
      'SET',
      set.map(([attribute, value]) => `${naming.name(attribute)} = ${naming.value(value)}`),
    ),
    ...clause(
      'ADD',
      add.map(([attribute, by]) => `${naming.name(attribute)} ${naming.value(by)}`),
    ),
    ...clause('REMOVE', names.map(naming.name)),
  ].join(' ')
}

/** The port sets, then adds, then removes. */
const foldedChanges = (action: Action & { kind: 'update' }, removed: ReadonlySet<string>) => {
  const set = new Map(Object.entries(action.set ?? {}))
  const add = new Map(Object.entries(action.add ?? {}))
  for (const [attribute, by] of add) {
    const before = set.get(attribute)
    if (before === undefined) continue
    assert(typeof before === 'number', `${attribute} is not a number`)
    set.set(attribute, before + by)
    add.delete(attribute)
  }
  const stays = ([attribute]: readonly [string, unknown]) => !removed.has(attribute)
  return { set: [...set].filter(stays), add: [...add].filter(stays) }
}

const clause = (word: string, parts: readonly string[]): readonly string[] =>
  parts.length === 0 ? [] : [`${word} ${parts.join(', ')}`]

/** The rows of one partition, between the bounds if there are any. */
export const rangeText = (
  key: { readonly partition: string; readonly sort?: SortKey },
  range: Range,
  naming: Naming,
): string => {
  const partition = `${naming.name(key.partition)} = ${naming.value(range.partition)}`
  const { from, to } = range
  if (from === undefined && to === undefined) return partition
  assert(key.sort, 'a range over a table without sort values')
  const sort = naming.name(key.sort.attribute)
  if (to === undefined) return `${partition} AND ${sort} >= ${naming.value(from as Value)}`
  if (from === undefined) return `${partition} AND ${sort} <= ${naming.value(to)}`
  return `${partition} AND ${sort} BETWEEN ${naming.value(from)} AND ${naming.value(to)}`
}

/** The service refuses a range that ends before it begins; to us it is merely empty. */
export const isEmptyRange = ({ from, to }: Range): boolean => {
  if (from === undefined || to === undefined) return false
  if (typeof from === 'number' && typeof to === 'number') return from > to
  return Buffer.compare(Buffer.from(String(from)), Buffer.from(String(to))) > 0
}
