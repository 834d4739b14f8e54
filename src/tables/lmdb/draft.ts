// A draft: what one transaction will write, decided before it begins.
//
// D1  A write sees the effect of those decided before it in the same draft and in the one that is being committed, and of
//     nothing else that is not committed.
// D2  Nothing that follows deciding can fail: sizes and types are checked here, so there is no throw between two puts.
// D3  A group that turns out to be malformed leaves no trace in the draft.

import { assert } from '../../kernel/assert.ts'
import { applyAction, holds } from '../condition.ts'
import { TableFault, TableLimit } from '../faults.ts'
import type { Action, Key, Row, TableLimits, Value, Verdict, Write } from '../port.ts'
import type { Cell, Edit } from './cell.ts'
import type { Table } from './environment.ts'
import { encodeKey, encodePlace, keyBytesMax } from './keys.ts'
import type { RecordArena } from './record.ts'

export interface Draft {
  /** The changed rows, in the order in which they were decided. */
  readonly edits: readonly Edit[]
  /** Writes that are no rows: the heartbeat, entries that lead nowhere. They come first. */
  readonly others: (() => void)[]
  bytes: number
  /** The most puts and removals that the edits can come to. */
  operations: number
  /** Verdicts of a group of writes. Throws only for a malformed write, and then without effect. */
  decide(writes: readonly Write[]): readonly Verdict[]
  /** The row as this draft leaves it. */
  current(table: Table, key: string): Row | undefined
  /** Whether this draft changes the row. */
  touches(table: Table, key: string): boolean
  remove(table: Table, key: string, id: Key): void
  isEmpty(): boolean
}

export interface DraftDeps {
  /** No draft that is under way has the same. */
  readonly number: number
  readonly tableOf: (name: string) => Table
  readonly stored: (table: Table, key: string) => Row | undefined
  readonly arena: RecordArena
  readonly limits: TableLimits
}

export const createDraft = ({ number, tableOf, stored, arena, limits }: DraftDeps): Draft => {
  const edits: Edit[] = []
  const others: (() => void)[] = []

  const aim = (table: Table, id: Key, key: string): Edit => {
    const cell = table.cells.get(key)
    const below = cell?.newest
    const on = cell ? (below ? below.after : cell.row) : stored(table, key)
    const before = below !== undefined && below.draft === number ? below.before : on
    return {
      table,
      id,
      key,
      draft: number,
      cell,
      before,
      on,
      after: undefined,
      keep: false,
      below,
      replaced: false,
      chunk: undefined,
      start: 0,
      end: 0,
    }
  }

  const aimAt = (action: Action): Edit => {
    const table = tableOf(action.table)
    const id: Key = action.kind === 'put' ? keyOfPut(table, action.row) : action.key
    const key = encodeKey(table.schema, id)
    if (key.length > keyBytesMax)
      throw new TableLimit(`a key of ${table.schema.name} has ${key.length} bytes`, { limit: keyBytesMax })
    return aim(table, id, key)
  }

  /** The row after, as a record too. May throw; has no effect outside the edit. */
  const prepare = (edit: Edit, action: Action): void => {
    if (action.kind === 'check') return
    const { table } = edit
    const after = applyAction(table.schema, action, edit.on)
    edit.after = after
    if (!after) return
    assertSound(table, edit.id, edit.on, after)
    checkPlaces(table, edit.key, after)
    arena.encode(after, table.plan, edit)
    if (edit.end - edit.start > limits.rowBytes) tooLarge(table, edit.end - edit.start, limits.rowBytes)
    edit.keep = action.kind !== 'delete' && action.keep === true
  }

  const accept = (edit: Edit): void => {
    const { table, key, below } = edit
    const cell: Cell = edit.cell ?? { key, row: edit.on, newest: undefined, isKept: false }
    if (edit.cell === undefined) {
      edit.cell = cell
      table.cells.set(key, cell)
    }
    cell.newest = edit
    if (below !== undefined && below.draft === number) below.replaced = true
    edits.push(edit)
    draft.bytes += edit.end - edit.start
    draft.operations += table.operationsMax
  }

  const takeBack = (edit: Edit): void => {
    const { table, key, cell, below } = edit
    if (cell === undefined) return
    cell.newest = below
    if (below !== undefined && below.draft === number) below.replaced = false
    if (below === undefined && !cell.isKept) table.cells.delete(key)
    draft.bytes -= edit.end - edit.start
    draft.operations -= table.operationsMax
  }

  const decideOne = (action: Action): Verdict => {
    const edit = aimAt(action)
    if (action.if && !holds(action.if, edit.on)) return { kind: 'refused', action: 0, row: edit.on }
    if (action.kind === 'check') return done
    prepare(edit, action)
    accept(edit)
    return edit.after ? { kind: 'done', row: edit.after } : done
  }

  const decideAll = (actions: readonly Action[]): Verdict => {
    if (actions.length > limits.actions)
      throw new TableLimit(`a write of ${actions.length} actions`, { limit: limits.actions })
    const aimed: Edit[] = []
    for (let index = 0; index < actions.length; index++) {
      const action = actions[index] as Action
      const edit = aimAt(action)
      if (action.if && !holds(action.if, edit.on)) return { kind: 'refused', action: index, row: edit.on }
      aimed.push(edit)
    }
    for (let index = 0; index < actions.length; index++) prepare(aimed[index] as Edit, actions[index] as Action)
    for (let index = 0; index < actions.length; index++) {
      if ((actions[index] as Action).kind !== 'check') accept(aimed[index] as Edit)
    }
    const row = (actions[0] as Action).kind === 'check' ? undefined : (aimed[0] as Edit).after
    return row ? { kind: 'done', row } : done
  }

  const decideWrite = ({ actions }: Write): Verdict => {
    try {
      return actions.length === 1 ? decideOne(actions[0] as Action) : decideAll(actions)
    } catch (error) {
      if (error instanceof TableFault) return { kind: 'failed', fault: error }
      throw error
    }
  }

  const draft: Draft = {
    edits,
    others,
    bytes: 0,
    operations: 0,
    current: (table, key) => {
      const cell = table.cells.get(key)
      return cell ? (cell.newest ? cell.newest.after : cell.row) : stored(table, key)
    },
    touches: (table, key) => table.cells.get(key)?.newest?.draft === number,
    decide: (writes) => {
      const accepted = edits.length
      try {
        return writes.map(decideWrite)
      } catch (error) {
        while (edits.length > accepted) takeBack(edits.pop() as Edit)
        throw error
      }
    },
    remove: (table, key, id) => accept(aim(table, id, key)),
    isEmpty: () => others.length === 0 && edits.length === 0,
  }
  return draft
}

const done: Verdict = { kind: 'done' }

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

const tooLarge = ({ schema }: Table, bytes: number, bytesMax: number): never => {
  throw new TableLimit(`a row of ${schema.name} has ${bytes} bytes`, { limit: bytesMax })
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
