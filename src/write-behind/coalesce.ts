import { assert } from '../kernel/assert.ts'
import { rowId } from '../tables/condition.ts'
import type { Action, Row, Value, Write } from '../tables/port.ts'

type Update = Extract<Action, { kind: 'update' }>

/** Which writes may become one: those that say so, and mean the same row. */
export const mergeKey = (write: Write): string | undefined => {
  if (!write.merge) return undefined
  const { table, key } = onlyUpdate(write)
  return rowId(table, key)
}

/** One write that leaves the row as the two would, one after the other: the newest value wins, counters add up. */
export const coalesce = (earlier: Write, later: Write): Write => {
  const [first, second] = [onlyUpdate(earlier), onlyUpdate(later)]
  const set: Record<string, Value> = { ...first.set }
  const add: Record<string, number> = { ...first.add }
  const remove = new Set(first.remove)
  const forget = (attribute: string) => {
    delete set[attribute]
    delete add[attribute]
    remove.delete(attribute)
  }
  for (const [attribute, value] of Object.entries(second.set ?? {})) {
    forget(attribute)
    set[attribute] = value
  }
  for (const [attribute, by] of Object.entries(second.add ?? {})) {
    const known = set[attribute]
    const removed = remove.has(attribute)
    const before = known === undefined ? (removed ? 0 : add[attribute]) : asNumber(known) + (add[attribute] ?? 0)
    forget(attribute)
    // What the row holds is known after a set or a remove; otherwise it can only be counted on.
    if (known !== undefined || removed) set[attribute] = (before ?? 0) + by
    else add[attribute] = (before ?? 0) + by
  }
  for (const attribute of second.remove ?? []) {
    forget(attribute)
    remove.add(attribute)
  }
  const action: Update = {
    kind: 'update',
    table: second.table,
    key: second.key,
    ...(hasAny(set) ? { set: set as Row } : {}),
    ...(hasAny(add) ? { add } : {}),
    ...(remove.size > 0 ? { remove: [...remove] } : {}),
    ...(second.keep === undefined ? {} : { keep: second.keep }),
  }
  return { ...later, actions: [action] }
}

const onlyUpdate = (write: Write): Update => {
  const [action] = write.actions
  assert(action?.kind === 'update' && write.actions.length === 1, 'only single updates are merged')
  return action
}

const asNumber = (value: Value): number => {
  assert(typeof value === 'number', 'an amount was added to something that is not a number')
  return value
}

const hasAny = (record: object): boolean => {
  for (const _ in record) return true
  return false
}
