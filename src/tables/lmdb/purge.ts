import { TableFault } from '../faults.ts'
import type { Draft } from './draft.ts'
import type { Table } from './environment.ts'
import { decodeExpiry, decodeKey, encodeNumber } from './keys.ts'
import type { Reader } from './read.ts'
import { secondOf } from './writer.ts'

interface Expired {
  readonly table: Table
  readonly entry: string
  readonly second: number
  readonly key: string
}

/** Puts the removal of at most `limit` expired rows into a draft, oldest first; how many. */
export const draftPurge = (
  deps: { readonly tables: readonly Table[]; readonly reader: Reader },
  draft: Draft,
  nowSeconds: number,
  limit: number,
): number => {
  const expired = deps.tables
    .flatMap((table) => expiredOf(deps.reader, table, nowSeconds, limit))
    .sort((a, b) => a.second - b.second)
    .slice(0, limit)
  return expired.filter((row) => drop(draft, row)).length
}

const expiredOf = (reader: Reader, table: Table, nowSeconds: number, limit: number): readonly Expired[] =>
  table.expiry
    ? reader
        .first(table.expiry.entries, encodeNumber(nowSeconds), limit)
        .map((entry) => ({ table, entry, ...decodeExpiry(entry) }))
    : []

/** Whether a row went. */
const drop = (draft: Draft, { table, entry, second, key }: Expired): boolean => {
  // Somebody writes that row in this very transaction: the next purge sees what came of it.
  if (draft.touches(table, key)) return false
  const row = readable(draft, table, key)
  if (row === 'unreadable') {
    // It cannot say in which indexes it is; an index may lead to a row that is not there.
    draft.others.push(() => {
      void table.rows.remove(key)
      void table.expiry?.entries.remove(entry)
    })
    return true
  }
  if (row && secondOf(table, row) === second) {
    draft.remove(table, key, decodeKey(table.schema, key))
    return true
  }
  draft.others.push(() => void table.expiry?.entries.remove(entry))
  return false
}

const readable = (draft: Draft, table: Table, key: string) => {
  try {
    return draft.current(table, key)
  } catch (error) {
    if (error instanceof TableFault) return 'unreadable'
    throw error
  }
}
