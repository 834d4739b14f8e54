// Claiming. A message is a hint; the row decides. A claim is one conditional write that raises the attempt, and from then on
// the attempt fences every other worker. The message is let go as soon as the claim is durable, or is known to be lost.

import { assert } from '../kernel/assert.ts'
import { type Fault, isFault } from '../kernel/fault.ts'
import type { Message, Received } from '../queues/port.ts'
import type { Action, Condition, Row, Write } from '../tables/port.ts'
import { checkJobId, checkWhole, checkWorkerId } from './check.ts'
import { type Decided, decide, decideAll, readJobRow, type StoreContext } from './context.ts'
import { JobUnknown, QueueUnknown, StoreBusy } from './faults.ts'
import type { Claim, Job } from './job.ts'
import { isEndedRow, jobKey, jobsTable, messageOf, number, stateOf } from './keys.ts'
import { notCancelled } from './moves.ts'
import { readJob } from './read.ts'
import { type JobState, step } from './transitions.ts'

export interface ClaimRequest {
  readonly queue: string
  readonly workerId: string
  readonly max: number
  readonly waitMs: number
  readonly signal?: AbortSignal
}

/** How often a message may name a job that is not there before it is put aside, and how long it rests in between. */
const unknownReceivesMax = 5
const unknownRestMs = 10_000

/** Takes up to `max` jobs that are ready, waiting for the first one. An empty answer means that there was none. */
export const claim = async (context: StoreContext, request: ClaimRequest): Promise<readonly Claim[]> => {
  checkWorkerId(request.workerId)
  checkWhole('max', request.max, 1, 1_000)
  if (!context.options.queues.includes(request.queue)) throw new QueueUnknown(request.queue)
  const received = await context.queue.receive(request.queue, request)
  const readable: Claiming[] = []
  for (const at of received) {
    if (at.message) readable.push(prepare(context, at, at.message, request.workerId))
    else await putAside(context, at, 'the message cannot be read')
  }
  const decided = await decideAll(
    context,
    readable.map(({ write }) => write),
  )
  const claims: Claim[] = []
  const done: Received[] = []
  for (let index = 0; index < readable.length; index++) {
    const claiming = readable[index] as Claiming
    // Nearly always these are at hand: waiting all the same would cost each claim two turns.
    const won = winningRow(context, claiming, decided[index] as Decided | Fault)
    const row = won instanceof Promise ? await won : won
    if (!row) continue
    done.push(claiming.received)
    const job = readJob(context, row)
    claims.push(asClaim(context, job instanceof Promise ? await job : job))
  }
  // Deleting after the claim and not before: a crash in between leaves a duplicate, which is dropped, never a lost job.
  if (!context.queue.within) await acknowledge(context, 'finish', request.queue, () => context.queue.finish(done))
  return claims
}

/**
 * Takes this very job, whatever else waits before it, or says why not. Its message, if it can be found, goes with the claim;
 * otherwise it comes later and is dropped as outdated.
 */
export const claimJob = async (context: StoreContext, jobId: string, workerId: string): Promise<Claim | NotClaimed> => {
  checkJobId(jobId)
  checkWorkerId(workerId)
  for (let round = 0; round < roundsMax; round++) {
    const row = await readJobRow(context, jobId)
    if (!row) throw new JobUnknown(jobId)
    const notBefore = number(row, 'not_before')
    if (stateOf(row) !== 'SCHEDULED') return { state: stateOf(row), notBefore: undefined }
    if (notBefore > context.clock.now()) return { state: 'SCHEDULED', notBefore }
    const message = messageOf(row)
    const withdrawal = context.queue.within?.withdraw({ message, notBefore })
    const { claimId, write } = claimOf(context, message, workerId, withdrawal)
    const decided = await decide(context, write)
    const won = decided.kind === 'done' || isOwn(decided.row, claimId)
    const now = won ? (decided.row ?? (await readJobRow(context, jobId))) : undefined
    if (now) return asClaim(context, await readJob(context, now))
  }
  throw new StoreBusy(`job ${jobId} changes faster than it can be claimed`, { retryAfterMs: 1_000 })
}

/** Why a job could not be taken: it has another state, or its time has not come. */
export interface NotClaimed {
  readonly state: JobState
  readonly notBefore: number | undefined
}

const roundsMax = 10

interface Claiming {
  readonly received: Received
  readonly message: Message
  readonly claimId: string
  readonly write: Write
}

const scheduled: Condition = { test: '=', attribute: 'state', value: 'SCHEDULED' satisfies JobState }

const prepare = (context: StoreContext, received: Received, message: Message, workerId: string): Claiming => ({
  received,
  message,
  ...claimOf(context, message, workerId, context.queue.within?.finish(received)),
})

const claimOf = (context: StoreContext, message: Message, workerId: string, finish: Action | undefined) => {
  const { clock, random, options } = context
  const now = clock.now()
  const claimId = Buffer.from(random.bytes(12)).toString('base64url')
  const update: Action = {
    kind: 'update',
    table: jobsTable.name,
    key: jobKey(message.jobId),
    set: {
      state: step('SCHEDULED', 'claimed'),
      attempt: message.attempt + 1,
      renewals: 0,
      claim_id: claimId,
      worker_id: workerId,
      updated_at: now,
      // Only when somebody looks next: expiry goes by the job's own lease.
      due_at: now + options.execution.leaseMs,
    },
    if: {
      test: 'all',
      of: [
        scheduled,
        { test: '=', attribute: 'attempt', value: message.attempt },
        // The one comparison of two wall clocks, and it decides only about being early.
        { test: '<=', attribute: 'not_before', value: now },
        notCancelled,
      ],
    },
    keep: true,
  }
  const write: Write = { actions: finish ? [update, finish] : [update] }
  return { claimId, write }
}

/** A refused claim whose row carries its own mark has won: its answer was lost. */
const isOwn = (row: Row | undefined, claimId: string): boolean =>
  row !== undefined && row['claim_id'] === claimId && stateOf(row) === 'RUNNING'

/** The row after a claim that was won; undefined if it was lost, and then the message is dealt with. */
const winningRow = (
  context: StoreContext,
  { received, message, claimId }: Claiming,
  decided: Decided | Fault,
): Row | undefined | Promise<Row | undefined> => {
  // The outcome is unknown and the storage out of reach: leave the message alone, it comes again when its hold has passed.
  if (isFault(decided)) return undefined
  if (decided.kind === 'done') return decided.row ?? readJobRow(context, message.jobId)
  const { row } = decided
  if (isOwn(row, claimId)) return row
  return letGo(context, received, message, row).then(() => undefined)
}

const letGo = async (context: StoreContext, received: Received, message: Message, row: Row | undefined) => {
  const { queue, clock } = context
  if (!row) {
    if (received.receives >= unknownReceivesMax) return putAside(context, received, `job ${message.jobId} is unknown`)
    // Perhaps the job was restored from a backup that lags: not at first sight.
    return acknowledge(context, 'release', received.queue, () => queue.release([received], unknownRestMs))
  }
  const early = number(row, 'not_before') - clock.now()
  if (stateOf(row) === 'SCHEDULED' && number(row, 'attempt') === message.attempt && early > 0) {
    return acknowledge(context, 'release', received.queue, () => queue.release([received], early))
  }
  const reason = isEndedRow(row) ? 'ended' : stateOf(row) === 'RUNNING' ? 'running' : 'outdated'
  context.emit({ name: 'message.dropped', jobId: message.jobId, queue: message.queue, reason })
  return acknowledge(context, 'finish', received.queue, () => queue.finish([received]))
}

const putAside = (context: StoreContext, received: Received, reason: string): Promise<void> => {
  context.emit({ name: 'message.deadLettered', queue: received.queue, reason })
  return acknowledge(context, 'deadLetter', received.queue, () => context.queue.deadLetter(received, reason))
}

/** A message that cannot be let go comes again and is dropped then; the job's state does not depend on it. */
const acknowledge = async (context: StoreContext, verb: string, queue: string, act: () => Promise<void>) => {
  try {
    await act()
  } catch (error) {
    if (!isFault(error)) throw error
    context.emit({ name: 'message.unacknowledged', queue, verb, code: error.code })
  }
}

const asClaim = (context: StoreContext, job: Job): Claim => {
  if (job.state !== 'RUNNING') assert(false, `job ${job.id} was claimed and is ${job.state}`)
  context.emit({ name: 'job.claimed', jobId: job.id, queue: job.queue, attempt: job.attempt })
  return { job, hold: { jobId: job.id, queue: job.queue, attempt: job.attempt } }
}
