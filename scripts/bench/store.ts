// Jobs through the embedded store, each enqueued, claimed and settled with a durable acknowledgement of every step, against a
// bare LMDB loop that writes the same bytes under the same keys in three durable steps. Run: npx tsx scripts/bench/store.ts

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { open } from 'lmdb'
import { loadOptions } from '../../src/config/load.ts'
import type { Hold } from '../../src/jobs/job.ts'
import { jobsTable } from '../../src/jobs/keys.ts'
import { createSigner } from '../../src/jobs/signer.ts'
import { createStore, type JobStore } from '../../src/jobs/store.ts'
import { systemClock } from '../../src/kernel/clock.ts'
import { createIds } from '../../src/kernel/ids.ts'
import { systemRandom } from '../../src/kernel/random.ts'
import { eventsTable, logId } from '../../src/log/keys.ts'
import { createEmbeddedQueue, queueTable } from '../../src/queues/embedded.ts'
import type { Engine } from '../../src/tables/lmdb/environment.ts'
import { systemHost } from '../../src/tables/lmdb/host.ts'
import { type Place, writePlace } from '../../src/tables/lmdb/keys.ts'
import { openLmdb } from '../../src/tables/lmdb.ts'
import { silent } from '../../src/telemetry/events.ts'
import { createPersistence } from '../../src/write-behind/persist.ts'
import { median, type Row } from './row.ts'

const schemas = [jobsTable, eventsTable, queueTable]
const deps = {
  clock: systemClock,
  random: systemRandom,
  emit: silent,
  host: systemHost(),
  warn: () => {},
  fatal: (error: unknown) => {
    throw error
  },
}

/** One put or remove, as the adapter makes it: which database, which key, how many bytes. */
interface Touch {
  readonly database: string
  readonly key: string
  readonly bytes: number | undefined
}

const openStore = async (path: string, engine?: () => Promise<Engine>) => {
  const options = loadOptions({})
  const local = await openLmdb({ ...deps, ...(engine ? { engine } : {}) }, { path, schemas })
  const tables = createPersistence(deps, local, schemas, options.writeBehind)
  const queue = createEmbeddedQueue({ ...deps, tables: { ...tables, watch: local.watch, purge: local.purge } })
  const signer = createSigner([{ id: 'bench', secret: systemRandom.bytes(32) }])
  const ids = createIds(systemClock, systemRandom)
  const store = createStore({ ...deps, tables, queue, ids, options: options.jobs, signer })
  const end = async () => {
    await queue.close()
    await tables.close()
  }
  return { store, end }
}

const request = { queue: 'default', params: { kind: 'handler', name: 'noop', input: { n: 1 } } } as const
const endPayload = Buffer.alloc(120, 7)
const closing = (hold: Hold) => ({
  output: [],
  end: {
    log_id: logId(hold.jobId, hold.attempt),
    sequence: 2,
    end_sequence: 2,
    timestamp: systemClock.now(),
    event_type: 4,
    event_payload: endPayload,
  },
})

const isOfTable = (database: string): boolean => database.includes('/')

/** The adapter writes some keys part by part. */
const textOf = (key: string | Place): string => {
  if (typeof key === 'string') return key
  const bytes = Buffer.alloc(2_000)
  return bytes.toString('latin1', 0, writePlace(key, bytes, 0))
}

/** What the three steps of one job write, recorded below the adapter. */
const recordSteps = async (): Promise<{ steps: readonly (readonly Touch[])[]; jobId: string }> => {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-bench-'))
  let touched: Touch[] = []
  const recording: Engine = {
    open: ((options: Parameters<typeof open>[0]) => {
      const root = open(options)
      const openDb = root.openDB.bind(root) as (name: string, settings: object) => ReturnType<typeof root.openDB>
      root.openDB = ((name: string, settings: object) => {
        const database = openDb(name, settings)
        // What the adapter writes once a transaction and not once a job is its own business.
        if (!isOfTable(name)) return database
        const [put, remove] = [database.put.bind(database), database.remove.bind(database)]
        database.put = ((key: string | Place, value: Buffer & { start?: number; end?: number }, ...rest: []) => {
          const { start = 0, end = value.length } = value
          touched.push({ database: name, key: textOf(key), bytes: end - start })
          return put(key as string, value, ...rest)
        }) as typeof database.put
        database.remove = ((key: string | Place) => {
          touched.push({ database: name, key: textOf(key), bytes: undefined })
          return remove(key as string)
        }) as typeof database.remove
        return database
      }) as typeof root.openDB
      return root
    }) as Engine['open'],
  }
  const { store, end } = await openStore(folder, async () => recording)
  const steps: Touch[][] = []
  const take = () => {
    steps.push(touched)
    touched = []
  }
  touched = []
  const { jobId } = await store.enqueue(request)
  take()
  const [claim] = await store.claim({ queue: 'default', workerId: 'bench/1', max: 1, waitMs: 1_000 })
  if (!claim) throw new Error('nothing to claim')
  take()
  await store.settle(claim.hold, { kind: 'done' }, closing(claim.hold))
  take()
  await end()
  rmSync(folder, { recursive: true })
  return { steps, jobId }
}

interface Rival {
  /** Runs so many jobs with so many in flight. */
  run(jobs: number, inFlight: number): Promise<unknown>
  end(): Promise<void>
}

/** As many flows as jobs may be in flight, each waiting for every step to be durable. */
const bareLmdb = (recorded: Awaited<ReturnType<typeof recordSteps>>): Rival => {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-bench-'))
  const root = open({ path: folder, overlappingSync: false, encoding: 'binary', maxDbs: 32 })
  const names = [...new Set(recorded.steps.flat().map(({ database }) => database))]
  const databases = new Map(names.map((name) => [name, root.openDB(name, { encoding: 'binary' })]))
  const values = new Map<number, Buffer>()
  for (const { bytes } of recorded.steps.flat()) if (bytes !== undefined) values.set(bytes, Buffer.alloc(bytes, 7))
  const ids = createIds(systemClock, systemRandom)
  const step = (touches: readonly Touch[], jobId: string): Promise<unknown> => {
    let last: Promise<unknown> = Promise.resolve()
    for (const { database, key, bytes } of touches) {
      const at = databases.get(database)
      const own = key.replace(recorded.jobId, jobId)
      if (!at) throw new Error('no database')
      last = bytes === undefined ? at.remove(own) : at.put(own, values.get(bytes) as Buffer)
    }
    return last
  }
  return {
    run: (jobs, inFlight) => {
      let left = jobs
      const flow = async () => {
        while (left-- > 0) {
          const jobId = ids.next()
          for (const touches of recorded.steps) await step(touches, jobId)
        }
      }
      return Promise.all(Array.from({ length: inFlight }, flow))
    },
    end: async () => {
      await root.close()
      rmSync(folder, { recursive: true })
    },
  }
}

const ourStore = async (): Promise<Rival> => {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-bench-'))
  const { store, end } = await openStore(folder)
  return {
    run: (jobs, inFlight) => throughStore(store, inFlight, jobs),
    end: async () => {
      await end()
      rmSync(folder, { recursive: true })
    },
  }
}

/** Enqueuers, one poller that claims as many as there is room for, settles side by side: the shape of a worker. */
const throughStore = async (store: JobStore, inFlight: number, jobs: number): Promise<void> => {
  let claimed = 0
  let left = jobs
  let running = 0
  let roomy: (() => void) | undefined
  const settled = new Map<string, () => void>()
  const flow = async () => {
    while (left-- > 0) {
      const { jobId } = await store.enqueue(request)
      await new Promise<void>((resolve) => settled.set(jobId, resolve))
    }
  }
  const settle = async (hold: Hold) => {
    await store.settle(hold, { kind: 'done' }, closing(hold))
    running -= 1
    roomy?.()
    // The settle of a fast job can overtake the answer to its enqueue by a turn.
    for (let turns = 0; !settled.has(hold.jobId) && turns < 1_000; turns++) await new Promise(setImmediate)
    settled.get(hold.jobId)?.()
    settled.delete(hold.jobId)
  }
  const poll = async () => {
    while (claimed < jobs) {
      if (running >= inFlight) await new Promise<void>((resolve) => (roomy = resolve))
      const max = Math.min(1_000, inFlight - running)
      const claims = await store.claim({ queue: 'default', workerId: 'bench/1', max, waitMs: 10_000 })
      claimed += claims.length
      running += claims.length
      for (const { hold } of claims) void settle(hold)
    }
  }
  await Promise.all([poll(), ...Array.from({ length: inFlight }, flow)])
}

const jobsPerSecond = async (jobs: number, work: Promise<unknown>): Promise<number> => {
  const begun = performance.now()
  await work
  return (jobs * 1_000) / (performance.now() - begun)
}

const rounds = 7
const warmUps = 3

export const benchStore = async (): Promise<readonly Row[]> => {
  const recorded = await recordSteps()
  const rows: Row[] = []
  for (const [inFlight, jobs] of [
    [32, 5_000],
    [1_000, 20_000],
  ] as const) {
    // Both stay open over all rounds, as a process would, and take turns, so that whatever else the machine does hits both.
    const rivals = [bareLmdb(recorded), await ourStore()] as const
    const [bare, ours]: [number[], number[]] = [[], []]
    for (let round = -warmUps; round < rounds; round++) {
      const figures: number[] = []
      for (const rival of rivals) figures.push(await jobsPerSecond(jobs, rival.run(jobs, inFlight)))
      if (round < 0) continue
      bare.push(figures[0] as number)
      ours.push(figures[1] as number)
    }
    for (const rival of rivals) await rival.end()
    const ratio = median(ours.map((figure, round) => figure / (bare[round] as number)))
    rows.push(
      { name: `bare LMDB, three durable steps a job, ${inFlight} in flight`, value: median(bare), unit: 'jobs/s' },
      {
        name: `enqueue + claim + settle, embedded, ${inFlight} in flight`,
        value: median(ours),
        unit: 'jobs/s',
        ratio,
        target: 0.6,
        moreIsBetter: true,
        ok: ratio >= 0.6,
      },
    )
  }
  return rows
}
