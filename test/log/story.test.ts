import { afterEach, expect, test } from 'vitest'
import { JobUnknown } from '../../src/jobs/faults.ts'
import type { Claim } from '../../src/jobs/job.ts'
import { createNotices } from '../../src/jobs/notices.ts'
import { isFault } from '../../src/kernel/fault.ts'
import { createAttemptLog } from '../../src/log/append.ts'
import type { AttemptLog } from '../../src/log/attempt-log.ts'
import type { StoredItem } from '../../src/log/event.ts'
import { createFollower } from '../../src/log/follow.ts'
import type { Entry } from '../../src/log/follower.ts'
import type { JobStatus } from '../../src/log/job-status.ts'
import { eventsTable, itemOf, logId } from '../../src/log/keys.ts'
import { deflateNow } from '../../src/log/payload.ts'
import { createTails } from '../../src/log/tail.ts'
import type { FaultRates } from '../../src/sim/faulty-tables.ts'
import { aRequest, claimOne, createHarness, type Harness, type Node } from '../support/harness.ts'
import { bytesOf, closingOf, eventsOf, lines, rangesOf } from './rig.ts'

// The log over the real job store: what the runtime will wire, on memory and virtual time.

const harnesses: Harness[] = []
const harness = (...given: Parameters<typeof createHarness>): Harness => {
  const made = createHarness(...given)
  harnesses.push(made)
  return made
}

afterEach(() => {
  // A test that leaves a timer has left something running.
  for (const { clock } of harnesses.splice(0)) expect(clock.timers).toBe(0)
})

const tailsOf = ({ clock }: Harness, { events }: Node) => createTails({ clock, emit: (event) => events.push(event) })

const logOf = (h: Harness, node: Node, claim: Claim, tails = tailsOf(h, node)): AttemptLog =>
  createAttemptLog(
    {
      clock: h.clock,
      random: node.context.random,
      emit: node.context.emit,
      deflate: deflateNow,
      publish: async (items) => {
        const renewal = await node.store.publish(claim.hold, items)
        tails.offer(logId(claim.hold.jobId, claim.hold.attempt), items)
        return renewal
      },
    },
    claim.job.execution,
    claim.hold,
  )

const stored = async ({ truth }: Harness, jobId: string, attempt = 1): Promise<readonly StoredItem[]> => {
  const { entries } = await truth.query(eventsTable.name, { partition: logId(jobId, attempt), limit: 100_000 })
  return entries.flatMap((row) => itemOf(row) ?? [])
}

const followerOf = (h: Harness, node: Node, tails = tailsOf(h, node), notices = createNotices()) =>
  createFollower({
    tables: node.tables,
    clock: h.clock,
    emit: node.context.emit,
    tails,
    look: async (jobId): Promise<JobStatus | undefined> => {
      try {
        const { state, attempt, execution, result, error } = await node.store.get(jobId)
        return { state, attempt, batchSizeBound: execution.batchSizeBound, result, error }
      } catch (cause) {
        if (isFault(cause) && cause.code === 'JOB_UNKNOWN') return undefined
        throw cause
      }
    },
    unknown: (jobId) => new JobUnknown(jobId),
    watch: node.store.watch,
    listen: notices.listen,
  })

const cruel: FaultRates = { slow: 0.3, slowMs: 400, throttled: 0.15, partial: 0.2, lostReply: 0.15, readFailed: 0.1 }

test('E01 E02 E11 E14 LOG-1 LOG-3 every acknowledged line is stored once and as it was written, however storing fails', async () => {
  const h = harness({ seed: 7 })
  const [client, worker] = [h.node('client'), h.node('worker', cruel)]
  const { jobId } = await h.run(client.store.enqueue(aRequest({ execution: { maxBatchSize: 5, batchSizeBound: 20 } })))
  const claim = await h.run(claimOne(client))
  const log = logOf(h, worker, claim)
  log.start({ attempt: 1, workerId: 'worker' })
  let text = ''
  for (let round = 0; round < 60; round++) {
    const chunk = lines(7, round * 7)
    text += chunk
    const room = log.output(round % 3 === 0 ? 'stderr' : 'stdout', Buffer.from(chunk))
    if (room !== undefined) await h.run(room)
    await h.clock.advance(150)
  }
  const closing = await h.run(log.finish({ exitCode: 0 }))
  await h.run(client.store.settle(claim.hold, { kind: 'done' }, closing))
  expect(Math.min(worker.tables.fired.partial, worker.tables.fired.lostReply)).toBeGreaterThan(0)

  const items = await stored(h, jobId)
  const events = eventsOf(items)
  expect(events.map(({ sequence }) => sequence)).toEqual(events.map((_, place) => place + 1))
  const joined = [
    ...bytesOf(items, 'stdout').toString().split('\n'),
    ...bytesOf(items, 'stderr').toString().split('\n'),
  ]
  expect(joined.filter((line) => line !== '').sort()).toEqual(
    text
      .split('\n')
      .filter((line) => line !== '')
      .sort(),
  )
  expect(worker.events.some(({ name }) => name === 'log.flushed')).toBe(true)
})

test('E15 G08 a worker that vanishes with a full buffer loses only what was not acknowledged, and a reader is told', async () => {
  const h = harness({ queue: 'embedded' })
  const node = h.node('one')
  const tails = tailsOf(h, node)
  const { jobId } = await h.run(node.store.enqueue(aRequest()))
  const lost = await h.run(claimOne(node))
  const log = logOf(h, node, lost, tails)
  const said: string[] = []
  const abort = new AbortController()
  const reading = (async () => {
    for await (const entry of followerOf(h, node, tails).follow({ jobId, signal: abort.signal }))
      said.push(...wordsOf(entry))
  })()
  log.start({ attempt: 1, workerId: 'worker' })
  log.output('stdout', Buffer.from(lines(60)))
  await h.clock.advance(10)
  log.output('stdout', Buffer.from(lines(3, 61)))
  log.abandon()
  // Nobody hears from the worker for a lease; the sweeper of another process takes the job back.
  for (let sweep = 0; sweep < 40; sweep++) {
    await h.run(node.store.sweep.run())
    await h.clock.advance(10_000)
  }
  const second = await h.run(claimOne(node))
  const next = logOf(h, node, second, tails)
  next.start({ attempt: 2, workerId: 'other' })
  const closing = await h.run(next.finish({ exitCode: 0 }))
  await h.run(node.store.settle(second.hold, { kind: 'done', result: 'fine' }, closing))
  await h.run(reading)
  expect(said.filter((word) => word !== 'keepAlive')).toEqual([
    ...Array.from({ length: 51 }, (_, place) => `1:${place + 1}`),
    '1 attemptEnded 51 false',
    '2:1',
    '2:2',
    '2 attemptEnded 2 true',
    '2 jobEnded COMPLETED fine',
  ])
})

test('the log of a claim that was lost is refused, and its worker is told', async () => {
  const h = harness()
  const node = h.node('one')
  await h.run(node.store.enqueue(aRequest()))
  const claim = await h.run(claimOne(node))
  await h.run(node.store.release(claim.hold))
  const log = logOf(h, node, claim)
  log.start({ attempt: 1, workerId: 'worker' })
  await h.clock.advance(10)
  await expect(log.failed).rejects.toMatchObject({ code: 'CLAIM_LOST' })
  await expect(log.finish({ exitCode: 0 })).rejects.toMatchObject({ code: 'CLAIM_LOST' })
})

test('R0.27 a hundred logs of a thousand lines each lose nothing and keep their order', async () => {
  const h = harness()
  const node = h.node('one', { slow: 0.5, slowMs: 50, throttled: 0.05, partial: 0.05 })
  const execution = { maxBatchSize: 50, batchSizeBound: 50 }
  const requests = Array.from({ length: 100 }, () => aRequest({ execution }))
  const made = await h.run(h.node('client').store.enqueueMany(requests))
  const quiet = h.node('quiet')
  const claims: Claim[] = []
  while (claims.length < 100) claims.push(await h.run(claimOne(quiet)))
  const texts = claims.map((_, job) => Array.from({ length: 1_000 }, (_, line) => `job ${job} line ${line}\n`).join(''))
  const run = async (claim: Claim, text: string) => {
    const log = logOf(h, node, claim)
    log.start({ attempt: 1, workerId: 'worker' })
    for (let at = 0; at < text.length; at += 1_000) {
      await log.output('stdout', Buffer.from(text.slice(at, at + 1_000)))
      if (at % 5_000 === 0) await new Promise<void>((resolve) => h.clock.setTimeout(resolve, 10))
    }
    return log.finish({ exitCode: 0 })
  }
  const closings = await h.run(Promise.all(claims.map((claim, job) => run(claim, texts[job] as string))))
  expect(made).toHaveLength(100)
  let batches = 0
  for (const [job, { hold }] of claims.entries()) {
    const items = [...(await stored(h, hold.jobId)), ...closingOf(closings[job] as never)]
    const events = eventsOf(items)
    expect(events.map(({ sequence }) => sequence)).toEqual(Array.from({ length: 1_002 }, (_, place) => place + 1))
    expect(bytesOf(items, 'stdout').toString()).toBe(texts[job])
    batches += items.length - 2
  }
  expect(batches).toBe(2_000)
}, 60_000)

test('R0.25 as a stored log: start, two batches of fifty, end', async () => {
  const h = harness()
  const node = h.node('one')
  const { jobId } = await h.run(node.store.enqueue(aRequest()))
  const claim = await h.run(claimOne(node))
  const log = logOf(h, node, claim)
  log.start({ attempt: 1, workerId: 'worker' })
  log.output('stdout', Buffer.from(lines(100)))
  const closing = await h.run(log.finish({ exitCode: 0 }))
  await h.run(node.store.settle(claim.hold, { kind: 'done' }, closing))
  expect(rangesOf(await stored(h, jobId))).toEqual(['1 processStart', '2–51', '52–101', '102 processEnd'])
})

const wordsOf = (entry: Entry): readonly string[] => {
  if ('item' in entry) return eventsOf([entry.item]).map(({ sequence }) => `${entry.attempt}:${sequence}`)
  const { kind, ...rest } = entry.marker
  if (kind === 'keepAlive') return [kind]
  return [[entry.attempt, kind, ...Object.values(rest).filter((value) => value !== undefined)].join(' ')]
}
