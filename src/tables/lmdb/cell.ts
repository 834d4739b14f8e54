// Cells: what this process knows of single rows, so that a write is decided without reading.
//
// C1  `row` is the row as committed; it changes in the turn in which a transaction lands, and not before.
// C2  `newest` is the last edit that is decided and has not landed. The next write is decided on top of it.
// C3  A cell is there while an edit of its row has not landed, and after that only if the row is kept.

import type { Key, Row } from '../port.ts'
import type { Table } from './environment.ts'
import type { Span } from './record.ts'

export interface Cell {
  readonly key: string
  row: Row | undefined
  newest: Edit | undefined
  isKept: boolean
}

/** One change of one row, decided, and where its record lies. Plain fields and no closures: one is made for every action of every write. */
export interface Edit extends Span {
  readonly table: Table
  readonly id: Key
  readonly key: string
  /** The number of the draft it belongs to. */
  readonly draft: number
  /** Undefined only while it is being decided. */
  cell: Cell | undefined
  /** The row before the draft. */
  readonly before: Row | undefined
  /** The row on which the edit was decided. */
  readonly on: Row | undefined
  after: Row | undefined
  keep: boolean
  /** The edit in whose place this one stands, of this draft or of the one ahead. */
  below: Edit | undefined
  /** A later edit of the same draft stands in its place. */
  replaced: boolean
}

/** Lets cells of landed edits go unless they are kept, and counts those. */
export interface Cells {
  /** The transaction of these edits is committed. */
  landed(edits: readonly Edit[]): void
  /** It failed, or was decided on one that failed: nothing is known of these rows any more. */
  dropped(edits: readonly Edit[]): void
}

export const createCells = (keptMax: number): Cells => {
  let kept = 0
  const setKept = (cell: Cell, isKept: boolean): void => {
    if (cell.isKept === isKept) return
    cell.isKept = isKept
    kept += isKept ? 1 : -1
  }
  return {
    landed: (edits) => {
      for (const edit of edits) {
        edit.below = undefined
        if (edit.replaced) continue
        const cell = edit.cell as Cell
        cell.row = edit.after
        if (cell.newest === edit) cell.newest = undefined
        setKept(cell, edit.keep && edit.after !== undefined && (cell.isKept || kept < keptMax))
        if (!cell.isKept && cell.newest === undefined) edit.table.cells.delete(edit.key)
      }
    },
    dropped: (edits) => {
      for (const { cell, table, key } of edits) {
        setKept(cell as Cell, false)
        table.cells.delete(key)
      }
    },
  }
}
