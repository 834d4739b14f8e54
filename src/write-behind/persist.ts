// The persistence actor: every write of a process goes through it, and it is itself a Tables, so nobody above knows it is there.
// Its neighbour below, the adapter, says what a group is and decides each write; this file decides what travels together.
// P1  Each write gets its own verdict, and only once.
// P2  Writes of one lane whose first action is on one row are given to the adapter in their order, one group after the other.
// P3  Signs of life and ends never wait behind anything else: each lane has batchers and room of its own.
// P4  No linger: a write that somebody awaits leaves as soon as its lane is free, with whatever else came meanwhile.
// P5  Every lane is bounded, every wait for room ends, every flush has a deadline.

import { createBatcher } from '../batch/batcher.ts'
import type { BatchLimits } from '../batch/limits.ts'
import type { WriteBehindOptions } from '../config/sections/write-behind.ts'
import { assert } from '../kernel/assert.ts'
import type { Clock } from '../kernel/clock.ts'
import { isFault } from '../kernel/fault.ts'
import type { Random } from '../kernel/random.ts'
import { spread } from '../kernel/spread.ts'
import { createCatalogue, keyOfAction, rowId } from '../tables/condition.ts'
import { TableClosed, TableThrottled } from '../tables/faults.ts'
import { type Lane, lanes, type TableLimits, type TableSchema, type Tables, type Write } from '../tables/port.ts'
import type { Emit } from '../telemetry/events.ts'
import { coalesce, mergeKey } from './coalesce.ts'
import { createFlush } from './flush.ts'
import { answer, type Call, createOperation, fail, joinOperations, type Operation } from './operation.ts'

export interface Persistence extends Tables {
  /** What waits or is under way, by lane. */
  readonly held: Readonly<Record<Lane, { readonly writes: number; readonly bytes: number }>>
}

export const createPersistence = (
  deps: { readonly clock: Clock; readonly random: Random; readonly emit: Emit },
  inner: Tables,
  schemas: readonly TableSchema[],
  options: WriteBehindOptions,
): Persistence => {
  const schemaOf = createCatalogue(schemas)
  const { groups } = inner.limits
  const flush = createFlush(deps.clock, inner, options.flushDeadlineMs)
  const laneOf = (lane: Lane) => Array.from({ length: widthOf(lane, inner.limits) }, () => createLane(lane))
  const createLane = (lane: Lane) =>
    createBatcher<Operation>(deps, limitsOf(lane, inner.limits, options), {
      sizeOf: (operation) => operation.bytes,
      flush: ({ items }) => flush(items, lane === 'later'),
      merge: {
        key: ({ write }) => mergeKey(write),
        fold: (earlier, later) => joinOperations(coalesce(earlier.write, later.write), earlier, later),
      },
      flushed: ({ trigger, count, tookMs }) =>
        deps.emit({ name: 'writes.flushed', lane, trigger, writes: count, tookMs }),
    })
  const batchers = Object.fromEntries(lanes.map((lane) => [lane, laneOf(lane)])) as Record<
    Lane,
    ReturnType<typeof createLane>[]
  >
  let closing: Promise<void> | undefined

  const submit = (operation: Operation, place: number): void => {
    const lane = operation.write.lane ?? 'row'
    const batcher = batchers[lane][place]
    assert(batcher, 'a write without a lane')
    const waiting = batcher.add(operation)
    if (waiting) admit(deps.clock, operation, waiting, lane, options.admissionMs)
  }

  return {
    limits: inner.limits,
    get: (table, key) => inner.get(table, key),
    getMany: (table, keys) => inner.getMany(table, keys),
    query: (table, range) => inner.query(table, range),
    lookup: (table, index, range) => inner.lookup(table, index, range),
    commit: (writes) =>
      new Promise((resolve, reject) => {
        if (closing) return reject(new TableClosed('the tables were closed'))
        if (writes.length === 0) return resolve([])
        const call: Call = { verdicts: [], left: writes.length, resolve, reject }
        const [first] = writes as readonly [Write]
        if (writes.length === 1) return submit(createOperation(first, call, 0), placeOf(schemaOf, groups, first))
        const places = assignPlaces(schemaOf, groups, writes)
        writes.forEach((write, index) => {
          submit(createOperation(write, call, index), places[index] as number)
        })
      }),
    close: () => {
      closing ??= Promise.all(Object.values(batchers).flatMap((all) => all.map((batcher) => batcher.drain()))).then(
        () => inner.close(),
      )
      return closing
    },
    get held() {
      return Object.fromEntries(lanes.map((lane) => [lane, sumOf(batchers[lane])])) as Persistence['held']
    },
  }
}

const sumOf = (all: readonly { readonly held: { count: number; bytes: number } }[]) =>
  all.reduce((sum, { held }) => ({ writes: sum.writes + held.count, bytes: sum.bytes + held.bytes }), {
    writes: 0,
    bytes: 0,
  })

/** How many groups of a lane may be under way at once. Writes that nobody waits for have time. */
const widthOf = (lane: Lane, limits: TableLimits): number => (lane === 'later' ? 1 : limits.groups)

const groupBytes = 4 * 1024 * 1024

const limitsOf = (lane: Lane, limits: TableLimits, options: WriteBehindOptions): BatchLimits => {
  const count = lane === 'later' ? options.laterCount : limits.groupWrites
  const width = widthOf(lane, limits)
  return {
    count,
    bytes: groupBytes,
    ageMs: lane === 'later' ? options.laterMs : 0,
    heldCount: Math.max(2 * count, Math.ceil(options.heldWrites / width)),
    heldBytes: Math.max(2 * groupBytes, Math.ceil(options.heldBytes / width)),
    // Only writes that nobody waits for are tried again here, and then for ever: nobody else would.
    retry: { attemptsMax: Number.POSITIVE_INFINITY, baseMs: 100, capMs: 30_000 },
  }
}

/** P5. Bulk and what nobody waits for is made to wait; the others are told to come back. */
const admit = (clock: Clock, operation: Operation, waiting: Promise<void>, lane: Lane, admissionMs: number): void => {
  const givesUp = lane === 'urgent' || lane === 'row' || lane === 'intake'
  const timer = givesUp
    ? clock.setTimeout(
        () =>
          answer(operation, {
            kind: 'failed',
            fault: new TableThrottled('too many writes wait already', { retryAfterMs: admissionMs }),
          }),
        admissionMs,
      )
    : undefined
  const admitted = () => timer !== undefined && clock.clearTimeout(timer)
  waiting.then(admitted, (error: unknown) => {
    admitted()
    fail(operation, isFault(error) ? new TableClosed('the tables were closed', { cause: error }) : error)
  })
}

/** P2. By the partition of the first action, so that a row always goes the same way. */
const placeOf = (schemaOf: (table: string) => TableSchema, groups: number, { actions, lane }: Write): number => {
  const [first] = actions
  if (!first || groups === 1 || lane === 'later') return 0
  return spread(keyOfAction(schemaOf(first.table), first)[0], groups)
}

/** Writes of one call that share any row go the same way, because the port promises that they take effect in their order. */
const assignPlaces = (
  schemaOf: (table: string) => TableSchema,
  groups: number,
  writes: readonly Write[],
): readonly number[] => {
  if (groups === 1) return writes.map(() => 0)
  const taken = new Map<string, number>()
  return writes.map((write) => {
    if (write.lane === 'later') return 0
    const rows = write.actions.map((action) => rowId(action.table, keyOfAction(schemaOf(action.table), action)))
    const known = rows.map((row) => taken.get(row)).find((place) => place !== undefined)
    const place = known ?? placeOf(schemaOf, groups, write)
    for (const row of rows) taken.set(row, place)
    return place
  })
}
