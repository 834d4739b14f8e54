import { crc32 } from 'node:zlib'
import { loadOptions } from '../../src/config/load.ts'
import type { JobOptions } from '../../src/config/sections/jobs.ts'
import type { StoreContext } from '../../src/jobs/context.ts'
import type { Claim, Closing, EnqueueRequest, Hold } from '../../src/jobs/job.ts'
import { jobsTable } from '../../src/jobs/keys.ts'
import { createSigner } from '../../src/jobs/signer.ts'
import { createStore, type JobStore } from '../../src/jobs/store.ts'
import { createIds } from '../../src/kernel/ids.ts'
import type { StoredItem } from '../../src/log/event.ts'
import { eventsTable } from '../../src/log/keys.ts'
import { createEmbeddedQueue, queueTable } from '../../src/queues/embedded.ts'
import { createMemoryQueue } from '../../src/queues/memory.ts'
import type { Queue } from '../../src/queues/port.ts'
import { createFaultyTables, type FaultRates, type FaultyTables } from '../../src/sim/faulty-tables.ts'
import { createSeededRandom } from '../../src/sim/seeded-random.ts'
import { createVirtualClock, type VirtualClock } from '../../src/sim/virtual-clock.ts'
import { createMemoryTables } from '../../src/tables/memory.ts'
import type { LocalTables, Row } from '../../src/tables/port.ts'
import type { TelemetryEvent } from '../../src/telemetry/events.ts'

const schemas = [jobsTable, eventsTable, queueTable]

/** One process's worth of store: its own faulty connection to the shared tables, its own clock reading, its own events. */
export interface Node {
  readonly store: JobStore
  /** What its verbs work with, for tests of one of them alone. */
  readonly context: StoreContext
  readonly tables: FaultyTables
  readonly events: TelemetryEvent[]
}

export interface Harness {
  readonly clock: VirtualClock
  /** The true durable state, without faults in between. */
  readonly truth: LocalTables
  readonly queue: Queue
  readonly node: (name: string, rates?: FaultRates, clock?: Pick<VirtualClock, 'now'>) => Node
  /** Runs a promise to its end while virtual time passes. */
  readonly run: <T>(work: Promise<T>) => Promise<T>
  readonly row: (jobId: string) => Promise<Row | undefined>
}

export interface HarnessOptions {
  readonly seed?: number
  /** `memory` sends after the commit, as SQS does; `embedded` sends within it. */
  readonly queue?: 'memory' | 'embedded'
  readonly jobs?: Partial<JobOptions>
  readonly wrapQueue?: (queue: Queue, clock: VirtualClock) => Queue
}

/** The job store on memory and virtual time. */
export const createHarness = (given: HarnessOptions = {}): Harness => {
  const clock = createVirtualClock()
  const random = createSeededRandom(given.seed ?? 1)
  const truth = createMemoryTables(schemas)
  const bare: Queue =
    given.queue === 'embedded' ? createEmbeddedQueue({ tables: truth, clock }) : createMemoryQueue({ clock })
  const queue = given.wrapQueue?.(bare, clock) ?? bare
  const options = loadOptions({ jobs: { queues: ['default', 'other'], ...given.jobs } }).jobs
  const signer = createSigner([{ id: 'k1', secret: random.fork('key').bytes(32) }])

  return {
    clock,
    truth,
    queue,
    node: (name, rates = {}, wall = clock) => {
      const chance = random.fork(name)
      const tables = createFaultyTables({ clock, random: chance.fork('faults') }, truth, rates)
      const events: TelemetryEvent[] = []
      const own = { ...clock, now: () => wall.now() }
      const emit = (event: TelemetryEvent) => void events.push(event)
      const ids = createIds(own, chance.fork('ids'))
      const context = { tables, queue, clock: own, random: chance, ids, options, emit }
      return { store: createStore({ ...context, signer }), context, tables, events }
    },
    run: async (work) => {
      let settled = false
      const done = work.finally(() => {
        settled = true
      })
      // The outcome is the caller's to look at; this only keeps it from being called unhandled while time passes.
      done.catch(() => {})
      for (let rounds = 0; !settled && rounds < 100_000; rounds++) {
        await new Promise(setImmediate)
        if (!settled && !clock.step()) await new Promise(setImmediate)
      }
      return done
    },
    row: (jobId) => truth.get(jobsTable.name, [jobId]),
  }
}

export const aRequest = (rest: Partial<EnqueueRequest> = {}): EnqueueRequest => ({
  queue: 'default',
  params: { kind: 'command', argv: ['true'] },
  ...rest,
})

/** The end of an attempt's log; another text is another end. */
export const aClosing = (_: Hold, text = 'exit 0', output: readonly string[] = []): Closing => {
  const line = (sequence: number, text: string): StoredItem => {
    const payload = Buffer.from(text)
    return { sequence, endSequence: sequence, timestamp: 0, type: 4, payload, encoding: 0, crc: crc32(payload) }
  }
  return {
    output: output.map((payload, index) => line(index + 2, payload)),
    end: line(output.length + 2, text),
  }
}

export const claimOne = async (
  { store }: Pick<Node, 'store'>,
  workerId = 'worker',
  queue = 'default',
): Promise<Claim> => {
  const [claim] = await store.claim({ queue, workerId, max: 1, waitMs: 0 })
  if (!claim) throw new Error('there was nothing to claim')
  return claim
}

export const claimNone = async ({ store }: Pick<Node, 'store'>, workerId = 'worker'): Promise<boolean> =>
  (await store.claim({ queue: 'default', workerId, max: 1, waitMs: 0 })).length === 0
