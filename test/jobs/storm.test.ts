import { describe, expect, test } from 'vitest'
import type { Hold, Outcome } from '../../src/jobs/job.ts'
import { jobsTable } from '../../src/jobs/keys.ts'
import { isEnded, type JobState, jobStates, stateAfter } from '../../src/jobs/transitions.ts'
import { sleep } from '../../src/kernel/clock.ts'
import { isFault } from '../../src/kernel/fault.ts'
import { createFaultyQueue } from '../../src/sim/faulty-queue.ts'
import { createSeededRandom, type SeededRandom } from '../../src/sim/seeded-random.ts'
import type { Row } from '../../src/tables/port.ts'
import { aClosing, aRequest, createHarness, type Harness, type Node } from '../support/harness.ts'

// Several processes, a storage that fails in every way it may, a queue that loses, doubles, delays and reorders, workers that die,
// pause and come back, people who cancel and redrive. Every committed change of a job row is checked against the promises; then everything heals, and everything
// that was asked for must come to an end.

const events = [
  'claimed',
  'renewed',
  'completed',
  'failed',
  'retried',
  'postponed',
  'released',
  'expired',
  'lost',
  'cancelRequested',
  'cancelled',
  'redriven',
] as const
const legal = new Map(jobStates.map((state) => [state, new Set(events.map((event) => stateAfter(state, event)))]))

/** JOB-1 to JOB-9, against the true durable state. */
const watchJobs = (harness: Harness) => {
  const rows = new Map<string, Row>()
  const made = new Map<string, string>()
  harness.truth.watch(jobsTable.name, (changes) => {
    for (const { key, row } of changes) {
      if (!row) throw new Error(`JOB-2 ${key[0]} was deleted`)
      if (row['made'] !== undefined) {
        const before = made.get(key[0])
        if (before !== undefined && before !== row['made']) throw new Error(`JOB-1 ${key[0]} made two jobs`)
        made.set(key[0], String(row['made']))
      }
      if (row['state'] === undefined) continue
      checkStep(rows.get(key[0]), row, harness.clock.now())
      rows.set(key[0], row)
    }
  })
  return { rows, made }
}

const checkStep = (before: Row | undefined, row: Row, now: number): void => {
  const state = row['state'] as JobState
  const [attempt, run] = [Number(row['attempt']), Number(row['run'])]
  if (!before) {
    expect([state, attempt, run]).toEqual(['SCHEDULED', 0, 1])
    return
  }
  const was = before['state'] as JobState
  if (!legal.get(was)?.has(state) && was !== state) throw new Error(`JOB-3 ${was} became ${state}`)
  const isClaim = was === 'SCHEDULED' && state === 'RUNNING'
  expect(attempt, 'JOB-5').toBe(Number(before['attempt']) + (isClaim ? 1 : 0))
  if (isClaim) expect(Number(before['not_before']), 'JOB-9').toBeLessThanOrEqual(now)
  if (isClaim) expect(before['cancel_requested_at'], 'JOB-10').toBeUndefined()
  if (isEnded(was)) {
    expect(run, 'JOB-4').toBe(Number(before['run']) + 1)
    expect(state, 'JOB-4').toBe('SCHEDULED')
  } else expect(run).toBe(before['run'])
  expect(Number(row['failed_attempts'] ?? 0), 'JOB-8').toBeLessThanOrEqual(Number(row['max_attempts']))
  expect(Number(row['lost_attempts'] ?? 0), 'JOB-8').toBeLessThanOrEqual(3)
}

const outcomes = (random: SeededRandom): Outcome => {
  const draw = random.next()
  if (draw < 0.5) return { kind: 'done', result: Math.floor(draw * 1_000) }
  if (draw < 0.7) return { kind: 'failed', error: 'e' }
  if (draw < 0.8) return { kind: 'later', inMs: Math.floor(random.next() * 60_000) }
  return draw < 0.9 ? { kind: 'giveUp', error: 'g' } : { kind: 'cancelled' }
}

interface Weather {
  storm: boolean
  over: boolean
}

/** Faults are what a worker must live with; anything else that is thrown is a bug and fails the test. */
const survive = async <T>(work: Promise<T>): Promise<T | undefined> =>
  work.catch((error: unknown) => {
    if (isFault(error)) return undefined
    throw error
  })

const runWorker = async (harness: Harness, node: Node, random: SeededRandom, weather: Weather) => {
  for (let turn = 0; !weather.over; turn++) {
    const workerId = `w${turn}`
    const claims = await survive(node.store.claim({ queue: 'default', workerId, max: 2, waitMs: 5_000 }))
    for (const { hold } of claims ?? []) await runAttempt(harness, node, hold, random, weather)
    if (!claims || claims.length === 0) await sleep(harness.clock, 500)
  }
}

const runAttempt = async (harness: Harness, node: Node, hold: Hold, random: SeededRandom, weather: Weather) => {
  const outcome: Outcome = weather.storm ? outcomes(random) : { kind: 'done' }
  const dies = weather.storm && random.next() < 0.15
  const sleeps = weather.storm && random.next() < 0.15
  for (let beats = 0; beats < 3 && !sleeps; beats++) {
    await sleep(harness.clock, Math.floor(random.next() * 20_000))
    await survive(node.store.renew(hold))
  }
  if (dies) return
  if (sleeps) await sleep(harness.clock, 200_000)
  if (weather.storm && random.next() < 0.05) await survive(node.store.release(hold))
  for (let tries = 0; tries < 5; tries++) {
    const answer = await node.store.settle(hold, outcome, aClosing(hold, JSON.stringify(outcome))).then(
      () => 'settled' as const,
      (error: unknown) => {
        if (isFault(error)) return error.retry
        throw error
      },
    )
    if (answer !== 'later') return
    await sleep(harness.clock, 1_000)
  }
}

const runPerson = async (
  harness: Harness,
  node: Node,
  random: SeededRandom,
  jobs: Map<string, string>,
  requests: number,
) => {
  for (let n = 0; n < requests; n++) {
    const requestId = `r${Math.floor(random.next() * requests * 0.8)}`
    const request = aRequest({ requestId, retry: { maxAttempts: 3, backoffBaseMs: 1_000 } })
    const made = await survive(node.store.enqueue(request))
    if (made) {
      expect(made.jobId, 'JOB-1').toBe(jobs.get(requestId) ?? made.jobId)
      jobs.set(requestId, made.jobId)
      if (random.next() < 0.1) await survive(node.store.cancel(made.jobId))
      const known = [...jobs.values()]
      const other = known[Math.floor(random.next() * known.length)] as string
      if (random.next() < 0.4) await survive(node.store.redrive(other, 1))
    }
    await sleep(harness.clock, Math.floor(random.next() * 10_000))
  }
}

const weatherAt = async (seed: number) => {
  const random = createSeededRandom(seed, 'storm')
  const kind = random.next() < 0.5 ? 'memory' : 'embedded'
  let healQueue = () => {}
  const harness = createHarness({
    seed,
    queue: kind,
    wrapQueue: (queue, clock) => {
      if (kind === 'embedded') return queue
      const rates = {
        lostReply: 0.05,
        failed: 0.05,
        duplicate: 0.1,
        delayed: 0.1,
        reordered: 0.1,
        lost: 0.05,
        emptyReceive: 0.1,
      }
      const faulty = createFaultyQueue({ queue, clock, random: random.fork('queue') }, { rates, delayMsMax: 60_000 })
      healQueue = faulty.heal
      return faulty.queue
    },
  })
  const rates = {
    slow: 0.1,
    throttled: 0.03,
    conflict: 0.02,
    lostRequest: 0.04,
    lostReply: 0.06,
    partial: 0.03,
    readFailed: 0.03,
    indexLag: 0.1,
  }
  const nodes = ['a', 'b', 'c'].map((name) => harness.node(name, rates))
  const weather: Weather = { storm: true, over: false }
  const { rows } = watchJobs(harness)
  const jobs = new Map<string, string>()
  const failures: unknown[] = []
  const start = (work: Promise<unknown>) => void work.catch((error: unknown) => failures.push(error))
  const sweepFor = async (node: Node) => {
    while (!weather.over) {
      await sleep(harness.clock, 10_000)
      await survive(node.store.sweep.run())
    }
  }
  for (const [index, node] of nodes.entries()) {
    start(runPerson(harness, node, random.fork(`person${index}`), jobs, 20))
    start(runWorker(harness, node, random.fork(`one${index}`), weather))
    start(runWorker(harness, node, random.fork(`two${index}`), weather))
    start(sweepFor(node))
  }
  const minutes = async (count: number) => {
    for (let minute = 0; minute < count && failures.length === 0; minute++) await harness.clock.advance(60_000)
  }
  await minutes(30)
  weather.storm = false
  for (const { tables } of nodes) tables.heal()
  healQueue()
  // Lost messages are sent again after 15 minutes at first, then after 30, 60 …
  await minutes(240)
  weather.over = true
  await minutes(5)
  if (failures.length > 0) throw failures[0]
  return { rows, jobs, nodes, kind }
}

describe('a storm', () => {
  const seen = { fenced: 0, expired: 0, resent: 0, cancelled: 0, redriven: 0, faults: 0 }

  test.each(Array.from({ length: 12 }, (_, seed) => seed + 1))(
    'JOB-1 to JOB-10 hold, and after healing everything ends (seed %i)',
    async (seed) => {
      const { rows, jobs, nodes } = await weatherAt(seed)
      for (const jobId of jobs.values()) expect(rows.has(jobId), 'JOB-2').toBe(true)
      const unended = [...rows.values()].filter((row) => !isEnded(row['state'] as JobState))
      expect(unended, 'LIV-1').toEqual([])
      for (const { events: told, tables } of nodes) {
        const count = (name: string) => told.filter((event) => event.name === name).length
        seen.fenced += count('job.fenced')
        seen.expired += count('job.expired')
        seen.resent += count('message.resent')
        seen.cancelled += count('job.cancelled')
        seen.redriven += count('job.redriven')
        seen.faults += Object.values(tables.fired).reduce((sum, times) => sum + times, 0)
      }
    },
  )

  test('was really one: stale workers were fenced, jobs expired, messages sent again, people interfered', () => {
    for (const [what, times] of Object.entries(seen)) expect(times, what).toBeGreaterThan(10)
  })
})
