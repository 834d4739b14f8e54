import { Fault } from '../../src/kernel/fault.ts'
import { eventTypes, type StoredItem } from '../../src/log/event.ts'
import { createFollower } from '../../src/log/follow.ts'
import type { Entry, Follower, FollowRequest } from '../../src/log/follower.ts'
import type { JobStatus } from '../../src/log/job-status.ts'
import { eventsTable, itemRow, logId } from '../../src/log/keys.ts'
import { createLinePage } from '../../src/log/line-page.ts'
import { deflateNow, packItem } from '../../src/log/payload.ts'
import { encodeSingle, processEnd, processError, processStart, type SingleEvent } from '../../src/log/single-event.ts'
import { createTails, type Tails } from '../../src/log/tail.ts'
import { createFaultyTables, type FaultRates } from '../../src/sim/faulty-tables.ts'
import { createSeededRandom } from '../../src/sim/seeded-random.ts'
import { createVirtualClock, settle, type VirtualClock } from '../../src/sim/virtual-clock.ts'
import { createMemoryTables } from '../../src/tables/memory.ts'
import type { LocalTables, Range, Tables } from '../../src/tables/port.ts'
import type { TelemetryEvent } from '../../src/telemetry/events.ts'
import { eventsOf } from './rig.ts'

export class Unknown extends Fault {
  readonly code = 'TEST_UNKNOWN'
  readonly retry = 'never'
}

/** A batch of lines `a`, `b` … from a sequence on, as one item. */
export const aBatch = (sequence: number, count: number, timestamp = 1_000): StoredItem => {
  const page = createLinePage(64 * 1_024)
  for (let place = 0; place < count; place++) {
    const line = Buffer.from(`line ${sequence + place}\n`)
    page.add(1, timestamp + place, line, 0, line.length, false)
  }
  const head = { sequence, endSequence: sequence + count - 1, timestamp, type: eventTypes.outputBatch }
  return packItem(head, page.encode(sequence, 1, 50), deflateNow) as StoredItem
}

const single = (event: SingleEvent, sequence: number, timestamp: number): StoredItem => {
  const head = { sequence, endSequence: sequence, timestamp, type: event.type }
  return packItem(head, encodeSingle(event, sequence, timestamp), deflateNow) as StoredItem
}
export const aStart = (timestamp = 1_000): StoredItem =>
  single(processStart({ attempt: 1, workerId: 'worker' }), 1, timestamp)
export const anError = (sequence: number, timestamp = 1_000): StoredItem =>
  single(processError('no'), sequence, timestamp)
export const anEnd = (sequence: number, timestamp = 1_000): StoredItem =>
  single(processEnd({ exitCode: 0 }, [], 0), sequence, timestamp)

/** What one follower has seen so far. */
export interface View {
  readonly entries: Entry[]
  readonly state: { ended: boolean; fault: unknown }
  readonly abort: AbortController
  /** `1:5` for event 5 of attempt 1; markers by their name and numbers. */
  said(): readonly string[]
}

export interface FollowRig {
  readonly clock: VirtualClock
  readonly tables: LocalTables
  readonly tails: Tails
  readonly follower: Follower
  /** The same tables, through which every read is noted. */
  readonly counted: Pick<Tables, 'query'>
  readonly reads: Range[]
  readonly looks: string[]
  readonly watches: { readonly jobId: string; readonly at: number }[]
  readonly events: TelemetryEvent[]
  status: JobStatus | undefined
  /** Changes the row without a word to anybody. */
  set(change: Partial<JobStatus>): void
  /** Tells whoever listens in this process. */
  tell(): void
  /** Stores items as a process elsewhere would. */
  store(items: readonly StoredItem[], attempt?: number, ttl?: number): Promise<void>
  /** Stores items and offers them to the tail, as this process does. */
  publish(items: readonly StoredItem[], attempt?: number): Promise<void>
  follow(request?: Partial<FollowRequest>): View
}

export const jobId = 'job'
export const running: JobStatus = {
  state: 'RUNNING',
  attempt: 1,
  batchSizeBound: 50,
  result: undefined,
  error: undefined,
}

export const aFollowRig = (rates: FaultRates = {}): FollowRig => {
  const clock = createVirtualClock(1_000_000)
  const tables = createMemoryTables([eventsTable])
  const faulty = createFaultyTables({ clock, random: createSeededRandom('follow') }, tables, rates)
  const reads: Range[] = []
  const looks: string[] = []
  const watches: { jobId: string; at: number }[] = []
  const events: TelemetryEvent[] = []
  const listeners = new Set<(notice: { changed?: true }) => void>()
  const emit = (event: TelemetryEvent) => void events.push(event)
  const tails = createTails({ clock, emit })
  const query = (table: string, range: Range) => {
    reads.push(range)
    return faulty.query(table, range)
  }

  const rig: FollowRig = {
    clock,
    tables,
    tails,
    counted: { query },
    reads,
    looks,
    watches,
    events,
    status: running,
    follower: createFollower({
      clock,
      emit,
      tails,
      tables: { query },
      look: async (id) => {
        looks.push(id)
        return rig.status
      },
      unknown: (id) => new Unknown(id),
      watch: async (id) => void watches.push({ jobId: id, at: clock.monotonic() }),
      listen: (_, listener) => {
        listeners.add(listener)
        return () => listeners.delete(listener)
      },
    }),
    set: (change) => {
      rig.status = { ...(rig.status ?? running), ...change }
    },
    tell: () => {
      for (const listener of [...listeners]) listener({ changed: true })
    },
    store: async (items, attempt = 1, ttl = 10_000_000) => {
      const put = (item: StoredItem) => ({
        actions: [{ kind: 'put' as const, table: eventsTable.name, row: itemRow(logId(jobId, attempt), item, ttl) }],
      })
      await tables.commit(items.map(put))
    },
    publish: async (items, attempt = 1) => {
      await rig.store(items, attempt)
      tails.offer(logId(jobId, attempt), items)
    },
    follow: (request = {}) => collect(rig, request),
  }
  return rig
}

const collect = ({ follower }: FollowRig, request: Partial<FollowRequest>): View => {
  const abort = new AbortController()
  const view: View = {
    entries: [],
    state: { ended: false, fault: undefined },
    abort,
    said: () => view.entries.flatMap(saidBy(request.fromSequence ?? 0)),
  }
  const run = async () => {
    for await (const entry of follower.follow({ jobId, signal: abort.signal, ...request })) view.entries.push(entry)
  }
  run().then(
    () => {
      view.state.ended = true
    },
    (fault: unknown) => {
      view.state.ended = true
      view.state.fault = fault
    },
  )
  return view
}

/** What an entry says to a reader who asked for a sequence; only the first attempt of a stream begins there. */
const saidBy = (from: number) => {
  let first: number | undefined
  return (entry: Entry): readonly string[] => {
    first ??= entry.attempt
    if ('item' in entry) {
      return eventsOf([entry.item], entry.attempt === first ? from : 0).map(
        ({ sequence }) => `${entry.attempt}:${sequence}`,
      )
    }
    const { kind, ...rest } = entry.marker
    return [[entry.attempt, kind, ...Object.values(rest).filter((value) => value !== undefined)].join(' ')]
  }
}

export const range = (from: number, to: number, attempt = 1): readonly string[] =>
  Array.from({ length: to - from + 1 }, (_, place) => `${attempt}:${from + place}`)

export { settle }
