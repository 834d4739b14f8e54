import { createHash } from 'node:crypto'
import { type Overridden, override } from '../config/override.ts'
import { type ExecutionConfig, executionOptions, retryOptions } from '../config/sections/jobs.ts'
import { assert } from '../kernel/assert.ts'
import { type Fault, isFault } from '../kernel/fault.ts'
import { type Outgoing, priorities } from '../queues/port.ts'
import type { Action, Row, Write } from '../tables/port.ts'
import { checkJobId, checkParams, checkRequestId, checkSchedule, checkWhole, limits } from './check.ts'
import { type Decided, decide, decideAll, readJobRow, type StoreContext, sendAfter } from './context.ts'
import { InputInvalid, JobUnknown, QueueUnknown, RequestReused } from './faults.ts'
import type { Enqueued, EnqueueRequest, Json } from './job.ts'
import { jobsTable, newJobActions, number, requestKey, seconds, stateOf, text } from './keys.ts'

/** A request that has passed the door: everything that will be written is decided. */
interface Prepared {
  readonly jobId: string
  readonly now: number
  readonly requestId: string | undefined
  readonly hash: string | undefined
  readonly outgoing: Outgoing
  readonly write: Write
}

export const enqueue = async (context: StoreContext, request: EnqueueRequest): Promise<Enqueued> => {
  const work = prepare(context, request)
  const decided = await decide(context, work.write)
  const answer = decided.kind === 'done' ? made(context, work) : await refusedAnswer(context, work, decided.row)
  if (isFault(answer)) throw answer
  if (answer.created) {
    const sending = sendAfter(context, [work.outgoing])
    if (sending) await sending
  }
  return answer
}

/** An answer for each request, in order; one that is refused does not hold up the others. */
export const enqueueMany = async (
  context: StoreContext,
  requests: readonly EnqueueRequest[],
): Promise<readonly (Enqueued | Fault)[]> => {
  if (requests.length > limits.bulk) {
    throw new InputInvalid('requests', `has more than ${limits.bulk} jobs`, { limit: limits.bulk })
  }
  const prepared = requests.map((request) => attempt(() => prepare(context, request)))
  const { own, joined } = joinEqual(requests, prepared)
  const decided = await decideAll(
    context,
    own.map(({ work }) => work.write),
  )
  const answers: (Enqueued | Fault)[] = []
  const created: Outgoing[] = []
  for (const [place, { index, work }] of own.entries()) {
    const answer = await answerFor(context, work, decided[place] as Decided | Fault)
    answers[index] = answer
    if (!isFault(answer) && answer.created) created.push(work.outgoing)
  }
  for (const [index, work] of prepared.entries()) if (isFault(work)) answers[index] = work
  for (const { index, first, same } of joined) answers[index] = joinAnswer(requests, answers, index, first, same)
  await sendAfter(context, created)
  return answers
}

const attempt = <T>(work: () => T): T | Fault => {
  try {
    return work()
  } catch (error) {
    if (isFault(error)) return error
    throw error
  }
}

interface Joined {
  readonly index: number
  readonly first: number
  readonly same: boolean
}

/** Requests of one call with one id are one request: only the first is written. */
const joinEqual = (requests: readonly EnqueueRequest[], prepared: readonly (Prepared | Fault)[]) => {
  const firsts = new Map<string, number>()
  const own: { index: number; work: Prepared }[] = []
  const joined: Joined[] = []
  for (const [index, work] of prepared.entries()) {
    if (isFault(work)) continue
    const id = work.requestId === undefined ? undefined : `${requests[index]?.queue}#${work.requestId}`
    const first = id === undefined ? undefined : firsts.get(id)
    if (first === undefined) {
      if (id !== undefined) firsts.set(id, index)
      own.push({ index, work })
    } else joined.push({ index, first, same: (prepared[first] as Prepared).hash === work.hash })
  }
  return { own, joined }
}

const joinAnswer = (
  requests: readonly EnqueueRequest[],
  answers: readonly (Enqueued | Fault)[],
  index: number,
  first: number,
  same: boolean,
): Enqueued | Fault => {
  const answer = answers[first] as Enqueued | Fault
  if (isFault(answer)) return answer
  return same ? { ...answer, created: false } : new RequestReused(requests[index]?.requestId as string, answer.jobId)
}

const prepare = (context: StoreContext, request: EnqueueRequest): Prepared => {
  const { options, clock } = context
  if (!options.queues.includes(request.queue)) throw new QueueUnknown(String(request.queue).slice(0, 100))
  if (request.requestId !== undefined) checkRequestId(request.requestId)
  if (request.jobId !== undefined) checkJobId(request.jobId)
  if (request.timeoutMs !== undefined) checkWhole('timeoutMs', request.timeoutMs, 1, limits.timeoutMs)
  const priority = request.priority ?? 'normal'
  if (!priorities.includes(priority)) throw new InputInvalid('priority', `must be one of ${priorities.join(', ')}`)
  const now = clock.now()
  const notBefore = checkSchedule(request, now)
  const paramsText = checkParams(request.params)
  const retry = merged('retry', override(retryOptions, options.retry, request.retry))
  const execution = merged('execution', override(executionOptions, options.execution, request.execution))
  const jobId = request.jobId ?? context.ids.next()
  const outgoing: Outgoing = { message: { jobId, queue: request.queue, priority, attempt: 0 }, notBefore }
  const { within } = context.queue
  const jobActions = newJobActions({
    id: jobId,
    queue: request.queue,
    priority,
    paramsText,
    requestId: request.requestId,
    notBefore,
    timeoutMs: request.timeoutMs,
    executionText: textOf(execution),
    ...retry,
    now,
    dueAt: within ? undefined : notBefore + options.outboxDelayMs,
  })
  const hash = request.requestId === undefined ? undefined : hashOf(request)
  const actions = [...jobActions]
  if (within) actions.push(within.send(outgoing))
  if (hash !== undefined) actions.push(requestAction(context, request, { jobId, hash, now, notBefore }))
  return { jobId, now, requestId: request.requestId, hash, outgoing, write: { actions, lane: 'intake' } }
}

/** Remembers which job the request made. Holds if nobody remembers one, or what is remembered has expired. */
const requestAction = (
  { options }: StoreContext,
  request: EnqueueRequest,
  made: { jobId: string; hash: string; now: number; notBefore: number },
): Action => ({
  kind: 'put',
  table: jobsTable.name,
  row: {
    job_id: requestKey(request.queue, request.requestId as string)[0],
    made: made.jobId,
    hash: made.hash,
    created_at: made.now,
    ttl: seconds(made.notBefore + options.requestRetentionMs),
  },
  if: { test: 'any', of: [{ test: 'absent' }, { test: '<=', attribute: 'ttl', value: Math.floor(made.now / 1000) }] },
})

const answerFor = (context: StoreContext, work: Prepared, decided: Decided | Fault) => {
  if (isFault(decided)) return decided
  return decided.kind === 'done' ? made(context, work) : refusedAnswer(context, work, decided.row)
}

const made = (context: StoreContext, work: Prepared): Enqueued => {
  context.emit({ name: 'job.enqueued', jobId: work.jobId, queue: work.outgoing.message.queue })
  return { jobId: work.jobId, createdAt: work.now, state: 'SCHEDULED', created: true }
}

/** The job is there already: made by an earlier request with this id, or by this very call, whose answer was lost. */
const refusedAnswer = async (
  context: StoreContext,
  work: Prepared,
  row: Row | undefined,
): Promise<Enqueued | Fault> => {
  assert(row, 'a new job was refused although nothing stood in its way')
  const isRequest = row['made'] !== undefined
  if (isRequest && row['hash'] !== work.hash) {
    return new RequestReused(work.requestId as string, text(row, 'made'))
  }
  const jobId = isRequest ? text(row, 'made') : work.jobId
  const jobRow = isRequest ? await readJobRow(context, jobId) : row
  if (!jobRow) return new JobUnknown(jobId)
  const createdAt = number(jobRow, 'created_at')
  const ours = jobId === work.jobId && createdAt === work.now
  return { jobId, createdAt, state: stateOf(jobRow), created: ours }
}

/** The server's own settings with what the request asks for, or the field that is wrong. */
const merged = <T>(field: string, overridden: Overridden<T>): T => {
  if (overridden.ok) return overridden.value
  throw new InputInvalid([field, ...overridden.path].join('.'), overridden.reason)
}

// The server's own configuration is one frozen object for all jobs: write its text once.
const texts = new WeakMap<ExecutionConfig, string>()
const textOf = (execution: ExecutionConfig): string => {
  const known = texts.get(execution)
  if (known !== undefined) return known
  const fresh = JSON.stringify(execution)
  texts.set(execution, fresh)
  return fresh
}

/** What makes two requests the same: everything the caller said, in whatever order it named the members of an object. */
const hashOf = (request: EnqueueRequest): string =>
  createHash('sha256')
    .update(canonical({ ...request, requestId: null, jobId: request.jobId ?? null } as unknown as Json))
    .digest('base64url')

/** JSON with the members of objects in the order of their names. The depth was limited at the door. */
const canonical = (value: Json): string => {
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  const members = Object.entries(value as Record<string, Json>)
    .filter(([, part]) => part !== undefined)
    .sort(([a], [b]) => (a < b ? -1 : 1))
  return `{${members.map(([name, part]) => `${JSON.stringify(name)}:${canonical(part)}`).join(',')}}`
}
