// Jobs through the embedded store, each enqueued, claimed and settled with a durable acknowledgement of every step, against bare
// LMDB loops that leave the same rows behind in three durable steps. Run: npm run bench -- store

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { loadOptions } from '../../src/config/load.ts'
import type { Hold } from '../../src/jobs/job.ts'
import { jobKey, jobsTable } from '../../src/jobs/keys.ts'
import { createSigner } from '../../src/jobs/signer.ts'
import { createStore, type JobStore } from '../../src/jobs/store.ts'
import { systemClock } from '../../src/kernel/clock.ts'
import { createIds } from '../../src/kernel/ids.ts'
import { systemRandom } from '../../src/kernel/random.ts'
import { encodings, eventTypes } from '../../src/log/event.ts'
import { eventsTable, itemRow, logId } from '../../src/log/keys.ts'
import { createEmbeddedQueue, queueTable } from '../../src/queues/embedded.ts'
import { systemHost } from '../../src/tables/lmdb/host.ts'
import { openLmdb } from '../../src/tables/lmdb.ts'
import { silent } from '../../src/telemetry/events.ts'
import { createPersistence } from '../../src/write-behind/persist.ts'
import { bareLmdb, type Rival, type Templates } from './bare-lmdb.ts'
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

const openStore = async (path: string) => {
  const options = loadOptions({})
  const local = await openLmdb(deps, { path, schemas })
  const tables = createPersistence(deps, local, schemas, options.writeBehind)
  const queue = createEmbeddedQueue({ ...deps, tables: { ...tables, watch: local.watch, purge: local.purge } })
  const signer = createSigner([{ id: 'bench', secret: systemRandom.bytes(32) }])
  const ids = createIds(systemClock, systemRandom)
  const store = createStore({ ...deps, tables, queue, ids, options: options.jobs, signer })
  const end = async () => {
    await queue.close()
    await tables.close()
  }
  return { store, tables, end }
}

const request = { queue: 'default', params: { kind: 'handler', name: 'noop', input: { n: 1 } } } as const
const endPayload = Buffer.alloc(120, 7)
const closing = () => ({
  output: [],
  end: {
    sequence: 2,
    endSequence: 2,
    timestamp: systemClock.now(),
    type: eventTypes.processEnd,
    payload: endPayload,
    encoding: encodings.plain,
    crc: 0,
  },
})

/** One job through the store, and what its tables held after each step. */
export const readTemplates = async (): Promise<Templates> => {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-bench-'))
  const { store, tables, end } = await openStore(folder)
  const { jobId } = await store.enqueue(request)
  const jobRow = async () => present(await tables.get(jobsTable.name, jobKey(jobId)))
  const enqueued = await jobRow()
  const message = (await tables.query(queueTable.name, { partition: 'default#normal', limit: 1 })).entries[0]
  const [claim] = await store.claim({ queue: 'default', workerId: 'bench/1', max: 1, waitMs: 1_000 })
  const claimed = await jobRow()
  const { hold } = present(claim)
  await store.settle(hold, { kind: 'done' }, closing())
  const settled = await jobRow()
  await end()
  rmSync(folder, { recursive: true })
  return { enqueued, message: present(message), claimed, settled, end: itemRow(logId(hold.jobId, 1), closing().end, 0) }
}

const present = <T>(value: T | undefined): T => {
  if (value === undefined) throw new Error('the store did not do what it is measured for')
  return value
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
    await store.settle(hold, { kind: 'done' }, closing())
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
  const templates = await readTemplates()
  const rows: Row[] = []
  for (const [inFlight, jobs] of [
    [32, 5_000],
    [1_000, 20_000],
  ] as const) {
    // All stay open over all rounds, as a process would, and take turns, so that whatever else the machine does hits all.
    const rivals = [bareLmdb(templates, 'bytes'), bareLmdb(templates, 'rows'), await ourStore()] as const
    const figures: [number[], number[], number[]] = [[], [], []]
    for (let round = -warmUps; round < rounds; round++) {
      for (const [place, rival] of rivals.entries()) {
        const figure = await jobsPerSecond(jobs, rival.run(jobs, inFlight))
        if (round >= 0) figures[place]?.push(figure)
      }
    }
    for (const rival of rivals) await rival.end()
    const [bytes, bare, ours] = figures
    const ratioTo = (base: readonly number[]) => median(ours.map((figure, round) => figure / (base[round] as number)))
    const name = `enqueue + claim + settle, embedded, ${inFlight} in flight`
    const ratio = ratioTo(bare)
    rows.push(
      { name: `bare LMDB loop over the same rows, ${inFlight} in flight`, value: median(bare), unit: 'jobs/s' },
      { name, value: median(ours), unit: 'jobs/s', ratio, target: 0.6, moreIsBetter: true, ok: ratio >= 0.6 },
      {
        name: `bare LMDB puts of bytes made beforehand, ${inFlight} in flight; ratio: ours to that`,
        value: median(bytes),
        unit: 'jobs/s',
        ratio: ratioTo(bytes),
      },
    )
  }
  return rows
}
