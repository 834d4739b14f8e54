// Handlers that do nothing, end to end: enqueued, claimed, called, settled, each step durable, against a bare LMDB loop that
// leaves the same rows behind in the same durable steps. Run: npm run bench -- handlers

import { bareLmdb } from './bare-lmdb.ts'
import { createEnds, type Rig, startRig } from './rig.ts'
import { median, type Row } from './row.ts'
import { readTemplates } from './store.ts'

const request = { queue: 'default', params: { kind: 'handler', name: 'noop', input: { n: 1 } } } as const
type Ends = ReturnType<typeof createEnds>

/** As many flows as jobs may be in flight, each waiting for the end of its job. */
const oneByOne =
  ({ runtime }: Rig, ends: Ends) =>
  (jobs: number, inFlight: number): Promise<unknown> => {
    let left = jobs
    const flow = async () => {
      while (left-- > 0) await ends.of((await runtime.enqueue(request)).jobId)
    }
    return Promise.all(Array.from({ length: inFlight }, flow))
  }

const perCall = 1_000

/** Calls of a thousand jobs, one after the other; what runs is limited by the worker. */
const inBulk =
  ({ runtime }: Rig, ends: Ends) =>
  async (jobs: number): Promise<unknown> => {
    const ended: Promise<void>[] = []
    for (let given = 0; given < jobs; given += perCall) {
      for (const one of await runtime.enqueueMany(Array.from({ length: perCall }, () => request))) {
        if (!('jobId' in one)) throw one
        ended.push(ends.of(one.jobId))
      }
    }
    return Promise.all(ended)
  }

const cases = [
  { what: 'one by one', inFlight: 32, slots: 32, jobs: 5_000, way: oneByOne },
  { what: 'in bulk', inFlight: 1_000, slots: 1_000, jobs: 20_000, way: inBulk },
] as const
const rounds = 5
const warmUps = 2
const target = 0.35

const jobsPerSecond = async (jobs: number, work: Promise<unknown>): Promise<number> => {
  const begun = performance.now()
  await work
  return (jobs * 1_000) / (performance.now() - begun)
}

export const benchHandlers = async (): Promise<readonly Row[]> => {
  const templates = await readTemplates()
  const rows: Row[] = []
  for (const { what, inFlight, slots, jobs, way } of cases) {
    const ends = createEnds()
    const rig = await startRig({ worker: { slots } }, { emit: ends.emit, handlers: { noop: () => undefined } })
    const [bare, run] = [bareLmdb(templates, 'rows'), way(rig, ends)]
    const pairs: { readonly bare: number; readonly ours: number }[] = []
    for (let round = -warmUps; round < rounds; round++) {
      const pair = {
        bare: await jobsPerSecond(jobs, bare.run(jobs, inFlight)),
        ours: await jobsPerSecond(jobs, run(jobs, inFlight)),
      }
      if (round >= 0) pairs.push(pair)
    }
    await rig.end()
    await bare.end()
    const ratio = median(pairs.map((pair) => pair.ours / pair.bare))
    const value = median(pairs.map(({ ours }) => ours))
    rows.push(
      {
        name: `bare LMDB loop, ${inFlight} in flight`,
        value: median(pairs.map((pair) => pair.bare)),
        unit: 'jobs/s',
      },
      { name: `handlers, ${what}`, value, unit: 'jobs/s', ratio, target, moreIsBetter: true, ok: ratio >= target },
    )
  }
  return rows
}
