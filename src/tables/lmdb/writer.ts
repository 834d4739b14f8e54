// The writer: takes groups of writes into one transaction after another.
//
// W1  One transaction at a time. What is given while it runs is decided meanwhile, on top of what it will have written, and is
//     the next one. If it fails, that was decided on something that did not happen, and is decided again.
// W2  A verdict is told only after the commit: durable, visible to every later read, and told to watchers.
// W3  A transaction that failed leaves nothing behind: its kept rows are dropped, and every write in it failed.
// W4  After a lost nonce or a failed flush this process never writes again.

import { HolderLost } from '../directory-faults.ts'
import { type TableFault, TableFull, TableUnavailable } from '../faults.ts'
import type { Change, Row, TableLimits, Verdict, Write } from '../port.ts'
import { createDraft, type Draft } from './draft.ts'
import type { Environment, Table } from './environment.ts'
import { readHolder, whileHolding } from './holder.ts'
import { encodeExpiry, findPlace, type Place } from './keys.ts'
import type { Reader } from './read.ts'
import { createRecordArena, type RecordArena } from './record.ts'
import type { Room } from './room.ts'

export interface Writer {
  commit(writes: readonly Write[]): Promise<readonly Verdict[]>
  /** Work on a draft of its own kind. Rejects with the fault if the transaction fails. */
  run<Result>(work: (draft: Draft) => Result): Promise<Result>
  /** Why nothing can be written any more. */
  readonly ended: TableFault | undefined
  /** Resolves when nothing is under way. */
  idle(): Promise<void>
}

export interface WriterDeps {
  readonly environment: Environment
  readonly tables: readonly Table[]
  readonly tableOf: (name: string) => Table
  readonly reader: Reader
  readonly nonce: string
  readonly fatal: (error: unknown) => void
  readonly room: Room
  /** Whether the disk is full, asked when an error could mean that or worse. */
  readonly isDiskFull: () => Promise<boolean>
  /** Performs a transaction: true if it stood, false if the nonce was another's. A test can put a failing disk here. */
  readonly transact: (perform: () => Promise<boolean>) => Promise<boolean>
}

interface Job {
  readonly size: number
  /** Decides; answers what to do with the outcome of the transaction. Total. */
  readonly decide: (draft: Draft) => (fault: TableFault | undefined) => void
}

/** A transaction that is decided, and under way or next. */
interface Flight {
  readonly draft: Draft
  readonly jobs: Job[]
  readonly outcomes: ((fault: TableFault | undefined) => void)[]
  writes: number
}

/** Bounds of one transaction; what does not fit is the next one's. */
const transactionWritesMax = 10_000
const transactionBytesMax = 32 * 1024 * 1024

export const createWriter = (deps: WriterDeps, options: { limits: TableLimits; keptMax: number }): Writer => {
  const { environment, tables, reader, nonce } = deps
  const arena = createRecordArena()
  const queue: Job[] = []
  let running: Promise<void> | undefined
  let current: Flight | undefined
  let next: Flight | undefined
  let ended: TableFault | undefined
  let keptCount = 0

  const submit = (job: Job): void => {
    queue.push(job)
    if (!current) running ??= Promise.resolve().then(pump)
    else {
      next ??= createFlight(current.draft)
      fill(next, queue)
    }
  }

  const createFlight = (ahead: Draft | undefined): Flight => {
    const draft = createDraft({
      tables,
      tableOf: deps.tableOf,
      stored: reader.stored,
      ahead,
      arena,
      limits: options.limits,
    })
    return { draft, jobs: [], outcomes: [], writes: 0 }
  }

  const pump = async (): Promise<void> => {
    for (;;) {
      reader.pin(environment.root.useReadTransaction())
      current = next ?? createFlight(undefined)
      next = undefined
      fill(current, queue)
      if (current.jobs.length === 0) break
      const fault = ended ?? (await write(current.draft))
      land(current, fault)
    }
    reader.unpin()
    current = undefined
    running = undefined
  }

  const land = ({ draft, outcomes }: Flight, fault: TableFault | undefined): void => {
    reader.unpin()
    arena.reset()
    for (const table of tables) keep(table, draft, fault)
    if (!fault) tell(tables, draft)
    for (const outcome of outcomes) outcome(fault)
    if (!fault) next?.draft.stand()
    else if (next) {
      queue.unshift(...next.jobs)
      next = undefined
    }
  }

  const write = async (draft: Draft): Promise<TableFault | undefined> => {
    try {
      const stood = draft.isEmpty()
        ? readHolder(environment)?.nonce === nonce
        : await deps.transact(async () => {
            const making = deps.room.reserve(operationsOf(tables, draft), draft.bytes)
            if (making) await making
            return whileHolding(environment, nonce, () => putDraft(tables, draft, arena))
          })
      if (stood) return undefined
      ended = new HolderLost('another process took the data directory over')
      return ended
    } catch (error) {
      const { fault, isFatal } = await translate(error, deps.isDiskFull)
      if (isFatal) {
        ended = fault
        deps.fatal(fault)
      }
      return fault
    }
  }

  const keep = (table: Table, draft: Draft, fault: TableFault | undefined): void => {
    const { kept } = table
    const before = kept.size
    for (const [key, entry] of draft.entries[table.number] as Draft['entries'][number]) {
      const isKept = !fault && entry.after && entry.keep && (keptCount < options.keptMax || kept.has(key))
      if (isKept) kept.set(key, entry.after as Row)
      else kept.delete(key)
    }
    keptCount += kept.size - before
  }

  return {
    get ended() {
      return ended
    },
    commit: (writes) =>
      new Promise((resolve, reject) => {
        submit({
          size: writes.length,
          decide: (draft) => {
            try {
              const verdicts = draft.decide(writes)
              return (fault) => resolve(fault ? writes.map(() => ({ kind: 'failed', fault })) : verdicts)
            } catch (error) {
              return () => reject(error)
            }
          },
        })
      }),
    run: (work) =>
      new Promise((resolve, reject) => {
        submit({
          size: 1,
          decide: (draft) => {
            try {
              const result = work(draft)
              return (fault) => (fault ? reject(fault) : resolve(result))
            } catch (error) {
              return () => reject(error)
            }
          },
        })
      }),
    idle: async () => {
      while (running) await running
    },
  }
}

/** Decides as many jobs as one transaction may hold. */
const fill = (flight: Flight, queue: Job[]): void => {
  while (queue.length > 0) {
    const isFull = flight.writes >= transactionWritesMax || flight.draft.bytes > transactionBytesMax
    if (isFull && flight.jobs.length > 0) return
    const job = queue.shift() as Job
    flight.jobs.push(job)
    flight.outcomes.push(job.decide(flight.draft))
    flight.writes += job.size
  }
}

/** The most puts and removals that a draft can come to. */
const operationsOf = (tables: readonly Table[], draft: Draft): number => {
  let operations = draft.others.length
  for (const { number, indexes, expiry } of tables) {
    const rows = (draft.entries[number] as Draft['entries'][number]).size
    operations += rows * (1 + 2 * indexes.length + (expiry ? 2 : 0))
  }
  return operations
}

/** Everything was checked when it was decided: nothing here throws, so a transaction is written whole. */
const putDraft = (tables: readonly Table[], draft: Draft, arena: RecordArena): void => {
  for (const other of draft.others) other()
  for (const table of tables) {
    for (const [key, { before, after }] of draft.entries[table.number] as Draft['entries'][number]) {
      if (after) void table.rows.put(key, arena.encode(after, table.plan))
      else if (before) void table.rows.remove(key)
      putPlaces(table, key, before, after)
    }
  }
}

const present = Buffer.alloc(1)
/** Used again for each entry: the library writes a key down before it returns. */
const place: Place = { partition: '', sort: 0, key: '' }

const putPlaces = (table: Table, key: string, before: Row | undefined, after: Row | undefined): void => {
  for (const { index, entries } of table.indexes) {
    const { partition, sort } = index
    const same = before && after && before[partition] === after[partition]
    if (same && before[sort.attribute] === after[sort.attribute]) continue
    place.key = key
    if (findPlace(index, before, place)) void entries.remove(place)
    if (findPlace(index, after, place)) void entries.put(place, present)
  }
  if (!table.expiry) return
  const old = secondOf(table, before)
  const fresh = secondOf(table, after)
  if (old === fresh) return
  if (old !== undefined) void table.expiry.entries.remove(encodeExpiry(old, key))
  if (fresh !== undefined) void table.expiry.entries.put(encodeExpiry(fresh, key), present)
}

/** When a row is rubbish. A ttl that is no number means never. */
export const secondOf = ({ schema }: Table, row: Row | undefined): number | undefined => {
  const second = schema.ttl === undefined ? undefined : row?.[schema.ttl]
  return typeof second === 'number' && !Number.isNaN(second) ? second : undefined
}

const tell = (tables: readonly Table[], draft: Draft): void => {
  for (const table of tables) {
    const changes = draft.changes[table.number] as Change[]
    if (changes.length === 0) continue
    for (const listener of table.listeners) {
      try {
        listener(changes)
      } catch (error) {
        // A listener's bug must not look like a failed commit, and it must not be hidden either.
        queueMicrotask(() => {
          throw error
        })
      }
    }
  }
}

/** ENOSPC and EDQUOT by number and by name, and MDB_MAP_FULL. */
const fullCodes: ReadonlySet<unknown> = new Set([28, 122, -30792, 'ENOSPC', 'EDQUOT'])
/** EIO. */
const ioError = 5

/** A full disk passes. After anything else nobody knows what the disk holds, and nothing may go on. */
const translate = async (
  error: unknown,
  isDiskFull: () => Promise<boolean>,
): Promise<{ readonly fault: TableFault; readonly isFatal: boolean }> => {
  const cause = await causeOf(error)
  const code = (cause as { code?: unknown }).code
  if (fullCodes.has(code) || (code === ioError && (await isDiskFull())))
    return { fault: new TableFull('the disk of the data directory is full', { cause }), isFatal: false }
  const reason = cause instanceof Error ? cause.message : String(cause)
  return { fault: new TableUnavailable(`a commit failed: ${reason}`, 'unknown', { cause }), isFatal: true }
}

/** The library tells the reason in a second promise, which ends the process unless somebody takes it. */
const causeOf = async (error: unknown): Promise<unknown> => {
  const reason = (error as { commitError?: Promise<unknown> }).commitError
  if (!reason) return error
  try {
    return await reason
  } catch (cause) {
    return cause
  }
}
