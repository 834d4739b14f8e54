// Tables in an LMDB environment of this process: one directory, one holder, one writer. Decides conditions itself, writes
// each group in one durable transaction, and reads only what is committed.

import { assert } from '../kernel/assert.ts'
import type { Clock } from '../kernel/clock.ts'
import type { Random } from '../kernel/random.ts'
import { assertWellFormed, createCatalogue } from './condition.ts'
import { TableClosed } from './faults.ts'
import { backupEnvironment } from './lmdb/backup.ts'
import { isDiskFull } from './lmdb/directory.ts'
import { type Engine, lastPage, type Table } from './lmdb/environment.ts'
import type { Migration } from './lmdb/format.ts'
import { type HeldDirectory, holdDirectory } from './lmdb/hold.ts'
import { heartbeatMs, letGo, type PreviousHolder, putHeartbeat } from './lmdb/holder.ts'
import type { HostFacts } from './lmdb/host.ts'
import { draftPurge } from './lmdb/purge.ts'
import { createReader } from './lmdb/read.ts'
import { createRoom } from './lmdb/room.ts'
import { createWriter } from './lmdb/writer.ts'
import type { LocalTables, TableLimits, TableSchema } from './port.ts'

export interface LmdbDeps {
  readonly clock: Clock
  readonly random: Random
  readonly host: HostFacts
  /** The disk can no longer be trusted: the process must end. */
  readonly fatal: (error: unknown) => void
  /** Something a person should know that stops nothing. */
  readonly warn: (message: string) => void
  /** Loads the native module; the installed one if left out. */
  readonly engine?: () => Promise<Engine>
  /** Brings older formats up to date; the known ones if left out. */
  readonly migrations?: ReadonlyMap<number, Migration>
  /** Performs each transaction; directly if left out. */
  readonly transact?: (perform: () => Promise<boolean>) => Promise<boolean>
}

export interface LmdbOptions {
  readonly path: string
  readonly schemas: readonly TableSchema[]
  /** The address space reserved for the map at first; it grows by itself. */
  readonly mapBytes?: number
  /** The most rows kept decoded in memory. */
  readonly keptMax?: number
}

export interface LmdbTables extends LocalTables {
  /** Of this holder; what it leaves behind can be told by it. */
  readonly holderNonce: string
  /** The holder before us, if it died without letting go. */
  readonly previous: PreviousHolder | undefined
  /** A consistent copy of the directory as it is now, in a new directory that nobody holds. */
  backup(path: string): Promise<void>
}

export const lmdbLimits: TableLimits = {
  rowBytes: 400 * 1024,
  actions: 100,
  writeBytes: 4 * 1024 * 1024,
  groups: 1,
  groupWrites: 500,
}

const mapBytesDefault = 1024 ** 3
const keptDefault = 100_000
/** The start of 2026: no machine that runs this can rightly believe in an earlier date. */
const builtMs = 1_767_225_600_000

export const openLmdb = async (deps: LmdbDeps, options: LmdbOptions): Promise<LmdbTables> => {
  const { path, schemas, mapBytes = mapBytesDefault, keptMax = keptDefault } = options
  createCatalogue(schemas)
  if (deps.clock.now() < builtMs) deps.warn('the clock of this machine shows a date before 2026')
  const held = await holdDirectory(deps, { path, schemas, mapBytes })
  return createTables(deps, held, { ...options, mapBytes, keptMax })
}

const createTables = (deps: LmdbDeps, held: HeldDirectory, options: Required<LmdbOptions>): LmdbTables => {
  const { environment, tables, nonce, engine } = held
  const byName = new Map(tables.map((table) => [table.schema.name, table]))
  const tableOf = (name: string): Table => {
    const table = byName.get(name)
    assert(table, `no table '${name}' was declared`)
    return table
  }
  const schemaOf = (name: string) => tableOf(name).schema
  const reader = createReader()
  const { transact = (perform) => perform(), fatal } = deps
  const room = createRoom(options.path, () => lastPage(environment))
  const writer = createWriter(
    { environment, tables, tableOf, reader, nonce, fatal, transact, room, isDiskFull: () => isDiskFull(options.path) },
    { limits: lmdbLimits, keptMax: options.keptMax },
  )
  const beating = beat(deps.clock, (count) =>
    writer.run((draft) => void draft.others.push(() => putHeartbeat(environment, nonce, count))),
  )
  let closing: Promise<void> | undefined

  const open = (name: string): Table => {
    if (closing) throw new TableClosed('the tables were closed')
    if (writer.ended) throw writer.ended
    return tableOf(name)
  }

  const close = async (): Promise<void> => {
    beating.stop()
    await writer.idle()
    // Whoever lost the directory has nothing to let go of.
    if (!writer.ended) await writer.run((draft) => void draft.others.push(() => letGo(environment))).catch(() => {})
    await environment.root.close()
  }

  return {
    limits: lmdbLimits,
    holderNonce: nonce,
    previous: held.previous,
    get: async (table, key) => reader.get(open(table), key),
    getMany: async (table, keys) => {
      const opened = open(table)
      return keys.map((key) => reader.get(opened, key))
    },
    query: async (table, range) => reader.query(open(table), range),
    lookup: async (table, index, range) => {
      const opened = open(table)
      const entries = opened.indexes.find(({ name }) => name === index)
      assert(entries, `no index '${index}' on ${table}`)
      return reader.lookup(opened, entries, range)
    },
    commit: async (writes) => {
      if (closing) throw new TableClosed('the tables were closed')
      for (const write of writes) assertWellFormed(schemaOf, write)
      return writes.length === 0 ? [] : writer.commit(writes)
    },
    watch: (table, listener) => {
      const { listeners } = tableOf(table)
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
    purge: (nowSeconds, limit) => {
      if (closing) return Promise.reject(new TableClosed('the tables were closed'))
      return writer.run((draft) => draftPurge({ tables, reader }, draft, nowSeconds, limit))
    },
    backup: async (path) => {
      if (closing) throw new TableClosed('the tables were closed')
      await backupEnvironment({ engine, environment }, path)
    },
    close: () => {
      closing ??= close()
      return closing
    },
  }
}

/** A sign of life at least every `heartbeatMs`, for openers who cannot see our process. */
const beat = (clock: Clock, write: (count: number) => Promise<unknown>) => {
  let count = 0
  let stopped = false
  const arm = () =>
    clock.setTimeout(() => {
      count += 1
      // A beat that failed shows in the writes of those who wait for one; the next beat tries again.
      const next = () => {
        if (!stopped) timer = arm()
      }
      write(count).then(next, next)
    }, heartbeatMs)
  let timer = arm()
  return {
    stop: (): void => {
      stopped = true
      clock.clearTimeout(timer)
    },
  }
}
