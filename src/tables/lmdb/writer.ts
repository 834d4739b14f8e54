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
import { createCells, type Edit } from './cell.ts'
import { createDraft, type Draft } from './draft.ts'
import type { Environment, Table } from './environment.ts'
import { readHolder, whileHolding } from './holder.ts'
import { encodeExpiry, findPlace, type Place } from './keys.ts'
import type { Reader } from './read.ts'
import { createRecordArena, type RecordArena, recordIn } from './record.ts'
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
  readonly arena: RecordArena
  readonly jobs: Job[]
  readonly outcomes: ((fault: TableFault | undefined) => void)[]
  writes: number
}

/**
 * Bounds of one transaction; what does not fit is the next one's. Few enough writes that a busy store always has another
 * transaction to decide while the disk is at work.
 */
const transactionWritesMax = 512
const transactionBytesMax = 32 * 1024 * 1024

export const createWriter = (deps: WriterDeps, options: { limits: TableLimits; keptMax: number }): Writer => {
  const { environment, reader, nonce } = deps
  const cells = createCells(options.keptMax)
  // One transaction is being written while the next one is decided.
  const arenas = [createRecordArena(), createRecordArena()]
  const queue: Job[] = []
  let running: Promise<void> | undefined
  let current: Flight | undefined
  let next: Flight | undefined
  let ended: TableFault | undefined
  let flights = 0

  const submit = (job: Job): void => {
    queue.push(job)
    if (current) decideAhead()
    else running ??= Promise.resolve().then(pump)
  }

  /** W1. What waits is decided while a transaction is under way. */
  const decideAhead = (): void => {
    if (queue.length === 0) return
    next ??= createFlight()
    fill(next, queue)
  }

  const createFlight = (): Flight => {
    const arena = arenas[flights % arenas.length] as RecordArena
    const { tableOf } = deps
    flights += 1
    const draft = createDraft({ number: flights, tableOf, stored: reader.stored, arena, limits: options.limits })
    return { draft, arena, jobs: [], outcomes: [], writes: 0 }
  }

  const pump = async (): Promise<void> => {
    for (;;) {
      reader.pin(environment.root.useReadTransaction())
      current = next ?? createFlight()
      next = undefined
      fill(current, queue)
      if (current.jobs.length === 0) break
      const writing = ended ?? write(current.draft)
      decideAhead()
      land(current, await writing)
    }
    reader.unpin()
    current = undefined
    running = undefined
  }

  const land = ({ draft, arena, outcomes }: Flight, fault: TableFault | undefined): void => {
    reader.unpin()
    arena.reset()
    if (fault) dropAll(draft)
    else {
      cells.landed(draft.edits)
      tell(draft.edits)
    }
    for (const outcome of outcomes) outcome(fault)
  }

  /** W3. What was decided on a transaction that failed is decided again. */
  const dropAll = (draft: Draft): void => {
    cells.dropped(draft.edits)
    if (!next) return
    cells.dropped(next.draft.edits)
    next.arena.reset()
    queue.unshift(...next.jobs)
    next = undefined
  }

  const write = async (draft: Draft): Promise<TableFault | undefined> => {
    try {
      const stood = draft.isEmpty()
        ? readHolder(environment)?.nonce === nonce
        : await deps.transact(async () => {
            const making = deps.room.reserve(draft.others.length + draft.operations, draft.bytes)
            if (making) await making
            return whileHolding(environment, nonce, () => putDraft(draft))
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
    const job = queue[0] as Job
    const isFull = flight.writes + job.size > transactionWritesMax || flight.draft.bytes > transactionBytesMax
    if (isFull && flight.jobs.length > 0) return
    queue.shift()
    flight.jobs.push(job)
    flight.outcomes.push(job.decide(flight.draft))
    flight.writes += job.size
  }
}

/** Everything was checked when it was decided: nothing here throws, so a transaction is written whole. */
const putDraft = ({ others, edits }: Draft): void => {
  for (const other of others) other()
  for (const edit of edits) {
    if (edit.replaced) continue
    const { table, key, before, after } = edit
    if (after) void table.rows.put(key, recordIn(edit))
    else if (before) void table.rows.remove(key)
    putPlaces(table, key, before, after)
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

const tell = (edits: readonly Edit[]): void => {
  const heard = new Map<Table, Change[]>()
  for (const { table, id, after } of edits) {
    if (table.listeners.size === 0) continue
    const changes = heard.get(table)
    if (changes) changes.push({ key: id, row: after })
    else heard.set(table, [{ key: id, row: after }])
  }
  for (const [table, changes] of heard) for (const listener of table.listeners) inform(listener, changes)
}

const inform = (listener: (changes: readonly Change[]) => void, changes: readonly Change[]): void => {
  try {
    listener(changes)
  } catch (error) {
    // A listener's bug must not look like a failed commit, and it must not be hidden either.
    queueMicrotask(() => {
      throw error
    })
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
