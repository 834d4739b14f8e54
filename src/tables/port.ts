import type { TableFault } from './faults.ts'

/** A cell. Structured values are text or bytes by the time they get here, so every adapter stores the same few types. */
export type Value = string | number | boolean | Uint8Array

/** A row with its key attributes. An attribute that is not there is absent, never null. */
export type Row = Readonly<Record<string, Value>>

/** The key of a row: the partition, and the sort value where the table has one. */
export type Key = readonly [partition: string, sort?: number | string]

export interface SortKey {
  readonly attribute: string
  readonly type: 'number' | 'string'
}

/** A table as data: the same description opens an LMDB database and provisions a DynamoDB table. */
export interface TableSchema {
  /** Our name of it; adapters may prefix it. */
  readonly name: string
  readonly partition: string
  readonly sort?: SortKey
  /** The attribute that holds the second after which a row is rubbish. */
  readonly ttl?: string
  /** Sparse: a row is in an index if and only if it has both attributes. */
  readonly indexes: Readonly<Record<string, { readonly partition: string; readonly sort: SortKey }>>
}

/** A claim about one row as it stands before the write. A comparison with an absent attribute is false. */
export type Condition =
  | { readonly test: 'absent' }
  | { readonly test: 'present' }
  | { readonly test: 'has' | 'lacks'; readonly attribute: string }
  | { readonly test: '=' | '<' | '<=' | '>' | '>='; readonly attribute: string; readonly value: Value }
  | { readonly test: 'all' | 'any'; readonly of: readonly Condition[] }

export type Action =
  /** Replaces the whole row. */
  | {
      readonly kind: 'put'
      readonly table: string
      readonly row: Row
      readonly if?: Condition
      readonly keep?: boolean
    }
  /**
   * Changes some attributes; creates the row if there is none. `add` starts from 0. Never touches key attributes. One that only
   * removes needs a condition.
   */
  | {
      readonly kind: 'update'
      readonly table: string
      readonly key: Key
      readonly set?: Row
      readonly add?: Readonly<Record<string, number>>
      readonly remove?: readonly string[]
      readonly if?: Condition
      readonly keep?: boolean
    }
  | { readonly kind: 'delete'; readonly table: string; readonly key: Key; readonly if?: Condition }
  /** Changes nothing; the write stands only if the condition holds. */
  | { readonly kind: 'check'; readonly table: string; readonly key: Key; readonly if: Condition }

export const lanes = ['urgent', 'row', 'intake', 'log', 'later'] as const
export type Lane = (typeof lanes)[number]

/**
 * What takes effect as a whole or not at all. More than one action makes it a transaction, each action on another row.
 * `keep` on an action is advice: the row will be written again soon (true) or not (false, the default).
 */
export interface Write {
  readonly actions: readonly Action[]
  /**
   * How the write travels where writes are collected. `urgent`: a sign of life or the end of something that runs, with room of
   * its own. `row` (the default): the state of something somebody waits for. `intake`: new work at the door. `log`: bulk. `later`:
   * nobody waits, it may wait for company. Writes of one lane whose first action is on one row keep their order.
   */
  readonly lane?: Lane
  /** Only for a single update without a condition: may be folded into an earlier one on the same row that still waits. */
  readonly merge?: true
}

export type Verdict =
  /** Durable. `row` is the row after the first action, where the backend tells: always if it is the only action. */
  | { readonly kind: 'done'; readonly row?: Row }
  /** Nothing was written, because the condition of that action did not hold for `row`, the row as it stood. */
  | { readonly kind: 'refused'; readonly action: number; readonly row: Row | undefined }
  /** `fault.outcome` says whether it may have been written all the same. */
  | { readonly kind: 'failed'; readonly fault: TableFault }

export interface Range {
  readonly partition: string
  /** Both ends are included. */
  readonly from?: number | string
  readonly to?: number | string
  readonly descending?: boolean
  readonly limit: number
  /** Where an earlier page ended. Opaque, and good only for the same range. */
  readonly after?: string
}

export interface Page<Entry> {
  readonly entries: readonly Entry[]
  /** Absent when there is nothing more. A page may be shorter than its limit and still have a next one. */
  readonly next?: string
}

/** What a backend can take, as data: feature code asks this instead of asking which backend it is. */
export interface TableLimits {
  /** The largest row in bytes, attribute names included. */
  readonly rowBytes: number
  /** The most actions of one write. */
  readonly actions: number
  /** The most bytes of one write. */
  readonly writeBytes: number
  /** How many groups of writes are worth having under way at once. */
  readonly groups: number
  /** How many writes are worth giving in one group. */
  readonly groupWrites: number
}

/** What the rest needs of a database, and not one verb more. Reads that fail throw a TableFault. */
export interface Tables {
  readonly limits: TableLimits
  /** Sees every write that was done before the call. */
  get(table: string, key: Key): Promise<Row | undefined>
  /** As many `get`s, answered in the order of the keys; together they are no snapshot. */
  getMany(table: string, keys: readonly Key[]): Promise<readonly (Row | undefined)[]>
  /** Rows of one partition in the order of their sort values. Sees every write that was done before the call. */
  query(table: string, range: Range): Promise<Page<Row>>
  /** Keys by an index, in its order. May lag behind the table for a while: never decide by it, look at the row. */
  lookup(table: string, index: string, range: Range): Promise<Page<Key>>
  /**
   * A verdict for each write, in order. The group as a whole is not atomic and one write's failure is not another's. Writes of
   * a group that touch the same row take effect in their order. `done` means durable and visible to every later read.
   * A malformed write (a duplicate row in one write, a table nobody declared) is a bug and throws.
   */
  commit(writes: readonly Write[]): Promise<readonly Verdict[]>
  /** Ends what is under way, then lets go of the backend. Later calls fail. */
  close(): Promise<void>
}

/** What a backend in this process offers beyond the port. Its `done` always carries the row after the first action. */
export interface LocalTables extends Tables {
  /** Calls back after each commit that touched the table, with the rows as written and undefined for each one deleted. */
  watch(table: string, listener: (changes: readonly Change[]) => void): () => void
  /** Deletes at most `limit` rows whose ttl second is before `nowSeconds`, oldest first; how many it deleted. */
  purge(nowSeconds: number, limit: number): Promise<number>
}

export interface Change {
  readonly key: Key
  readonly row: Row | undefined
}
