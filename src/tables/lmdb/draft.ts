// A draft: what one transaction will write, decided before it begins.
//
// D1  A write sees the effect of those decided before it in the same draft and in the one that is being committed, and of
//     nothing else that is not committed.
// D2  Nothing that follows deciding can fail: sizes and types are checked here, so there is no throw between two puts.
// D3  A group that turns out to be malformed leaves no trace in the draft.

import { assert } from '../../kernel/assert.ts'
import { applyAction, holds } from '../condition.ts'
import { TableFault, TableLimit } from '../faults.ts'
import type { Action, Change, Key, Row, TableLimits, Value, Verdict, Write } from '../port.ts'
import type { Table } from './environment.ts'
import { encodeKey, encodePlace, keyBytesMax } from './keys.ts'
import { type RecordArena, recordBytesAtMost } from './record.ts'

export interface Draft {
  /** The changed rows of each table, by the table's number. */
  readonly entries: readonly Map<string, DraftEntry>[]
  /** What watchers of each table will hear. */
  readonly changes: readonly Change[][]
  /** Writes that are no rows: the heartbeat, entries that lead nowhere. They come first. */
  readonly others: (() => void)[]
  bytes: number
  /** Verdicts of a group of writes. Throws only for a malformed write, and then without effect. */
  decide(writes: readonly Write[]): readonly Verdict[]
  /** The draft below this one is committed now: what it wrote is found where every committed row is. */
  stand(): void
  /** The row as this draft leaves it. */
  current(table: Table, key: string): Row | undefined
  remove(table: Table, key: string, id: Key): void
  isEmpty(): boolean
}

export interface DraftEntry {
  /** The row before this draft. */
  readonly before: Row | undefined
  readonly after: Row | undefined
  /** No less than the record of the row after will have. */
  readonly bytes: number
  readonly keep: boolean
}

interface Target {
  readonly action: Action
  readonly table: Table
  readonly id: Key
  readonly key: string
  /** What this draft has already decided about the row. */
  readonly entry: DraftEntry | undefined
  readonly row: Row | undefined
}

export interface DraftDeps {
  /** The draft that is being committed, on top of which this one is decided. */
  readonly ahead: Draft | undefined
  readonly tables: readonly Table[]
  readonly tableOf: (name: string) => Table
  readonly stored: (table: Table, key: string) => Row | undefined
  readonly arena: RecordArena
  readonly limits: TableLimits
}

export const createDraft = ({ tables, tableOf, stored, arena, limits, ...deps }: DraftDeps): Draft => {
  let { ahead } = deps
  const entries = tables.map(() => new Map<string, DraftEntry>())
  const changes = tables.map((): Change[] => [])
  const others: (() => void)[] = []
  const entriesOf = (table: Table) => entries[table.number] as Map<string, DraftEntry>
  const committed = (table: Table, key: string): Row | undefined => {
    const below = ahead?.entries[table.number]?.get(key)
    return below ? below.after : (table.kept.get(key) ?? stored(table, key))
  }

  const current = (table: Table, key: string): Row | undefined => {
    const entry = entriesOf(table).get(key)
    return entry ? entry.after : committed(table, key)
  }

  const aim = (action: Action): Target => {
    const table = tableOf(action.table)
    const { schema } = table
    const id: Key = action.kind === 'put' ? keyOfPut(table, action.row) : action.key
    const key = encodeKey(schema, id)
    if (key.length > keyBytesMax)
      throw new TableLimit(`a key of ${schema.name} has ${key.length} bytes`, { limit: keyBytesMax })
    const entry = entriesOf(table).get(key)
    return { action, table, id, key, entry, row: entry ? entry.after : committed(table, key) }
  }

  /** The change of one action, or undefined if it changes nothing. May throw; does nothing yet. */
  const prepare = ({ action, table, key, id, entry, row }: Target): DraftEntry | undefined => {
    if (action.kind === 'check') return undefined
    const after = applyAction(table.schema, action, row)
    if (after) assertSound(table, id, row, after)
    if (after) checkPlaces(table, key, after)
    const bytes = after ? recordBytesAtMost(after) : 0
    if (after && bytes > limits.rowBytes) checkRecord(arena.encode(after, table.plan), table, limits.rowBytes)
    return { before: entry ? entry.before : row, after, bytes, keep: action.kind !== 'delete' && action.keep === true }
  }

  const accept = ({ table, key, id }: Target, entry: DraftEntry): void => {
    entriesOf(table).set(key, entry)
    draft.bytes += entry.bytes
    if (table.listeners.size > 0) (changes[table.number] as Change[]).push({ key: id, row: entry.after })
  }

  const decideOne = (action: Action, undo: Undo): Verdict => {
    const target = aim(action)
    if (action.if && !holds(action.if, target.row)) return { kind: 'refused', action: 0, row: target.row }
    const entry = prepare(target)
    if (!entry) return done
    undo.push(target)
    accept(target, entry)
    return entry.after ? { kind: 'done', row: entry.after } : done
  }

  const decideAll = (actions: readonly Action[], undo: Undo): Verdict => {
    if (actions.length > limits.actions)
      throw new TableLimit(`a write of ${actions.length} actions`, { limit: limits.actions })
    const targets = actions.map(aim)
    const refused = targets.findIndex(({ action, row }) => action.if && !holds(action.if, row))
    if (refused >= 0) return { kind: 'refused', action: refused, row: (targets[refused] as Target).row }
    const prepared = targets.map(prepare)
    for (let index = 0; index < targets.length; index++) {
      const entry = prepared[index]
      if (!entry) continue
      undo.push(targets[index] as Target)
      accept(targets[index] as Target, entry)
    }
    const row = prepared[0]?.after
    return row ? { kind: 'done', row } : done
  }

  const decideWrite = ({ actions }: Write, undo: Undo): Verdict => {
    try {
      return actions.length === 1 ? decideOne(actions[0] as Action, undo) : decideAll(actions, undo)
    } catch (error) {
      if (error instanceof TableFault) return { kind: 'failed', fault: error }
      throw error
    }
  }

  const draft: Draft = {
    entries,
    changes,
    others,
    bytes: 0,
    current,
    stand: () => {
      ahead = undefined
    },
    decide: (writes) => {
      const undo = createUndo(draft)
      try {
        return writes.map((write) => decideWrite(write, undo))
      } catch (error) {
        undo.back()
        throw error
      }
    },
    remove: (table, key, id) => {
      const action: Action = { kind: 'delete', table: table.schema.name, key: id }
      const row = current(table, key)
      accept(
        { action, table, key, id, row, entry: undefined },
        { before: row, after: undefined, bytes: 0, keep: false },
      )
    },
    isEmpty: () => others.length === 0 && entries.every((rows) => rows.size === 0),
  }
  return draft
}

const done: Verdict = { kind: 'done' }

type Undo = ReturnType<typeof createUndo>

const createUndo = (draft: Draft) => {
  const steps: Target[] = []
  const heard = draft.changes.map((changes) => changes.length)
  const { bytes } = draft
  return {
    push: (target: Target): void => {
      steps.push(target)
    },
    back: (): void => {
      for (const { table, key, entry } of steps.reverse()) {
        const rows = draft.entries[table.number] as Map<string, DraftEntry>
        if (entry) rows.set(key, entry)
        else rows.delete(key)
      }
      draft.changes.forEach((changes, number) => {
        changes.length = heard[number] as number
      })
      draft.bytes = bytes
    },
  }
}

// Messages below are made only when they are needed: making them costs more than the checks.

const keyOfPut = ({ schema }: Table, row: Row): Key => {
  const partition = row[schema.partition]
  if (typeof partition !== 'string' || partition === '') return malformed(schema.name, `no ${schema.partition}`)
  if (!schema.sort) return [partition]
  const sort = row[schema.sort.attribute]
  return isSortable(schema.sort.type, sort) ? [partition, sort] : malformed(schema.name, `no ${schema.sort.attribute}`)
}

/** What the puts rely on: the key stayed, and what an index sorts by has the declared type. */
const assertSound = ({ schema, indexes }: Table, id: Key, before: Row | undefined, after: Row): void => {
  const moved = after[schema.partition] !== id[0] || (schema.sort && after[schema.sort.attribute] !== id[1])
  if (moved) malformed(schema.name, 'a write changed its key')
  for (const { index } of indexes) {
    const { attribute, type } = index.sort
    const value = after[attribute]
    const isNew = value !== undefined && value !== before?.[attribute]
    if (isNew && !isSortable(type, value)) malformed(schema.name, `${attribute} is not a ${type}`)
  }
}

const isSortable = (type: 'number' | 'string', value: unknown): value is number | string =>
  type === 'number' ? typeof value === 'number' && !Number.isNaN(value) : typeof value === 'string'

const malformed = (table: string, why: string): never => {
  assert(false, `a row of ${table}: ${why}`)
}

const checkRecord = (record: Buffer, { schema }: Table, bytesMax: number): void => {
  if (record.length > bytesMax)
    throw new TableLimit(`a row of ${schema.name} has ${record.length} bytes`, { limit: bytesMax })
}

/** Below this length two texts and a key fit into a place, however they are encoded. */
const shortText = 100

const checkPlaces = (table: Table, key: string, row: Row): void => {
  for (const { name, index } of table.indexes) {
    if (key.length < shortText && isShort(row[index.partition]) && isShort(row[index.sort.attribute])) continue
    const bytes = encodePlace(index, row, key)?.length ?? 0
    if (bytes > keyBytesMax)
      throw new TableLimit(`an entry of index ${name} of ${table.schema.name} has ${bytes} bytes`, {
        limit: keyBytesMax,
      })
  }
}

const isShort = (value: Value | undefined): boolean => typeof value !== 'string' || value.length < shortText
