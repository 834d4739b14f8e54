// The two ways a job row changes hands: back to SCHEDULED, or to an end. Both are built here and only here, so that every
// verb that moves a job leaves the same fields in the same shape.

import type { StoredItem } from '../log/event.ts'
import { eventsTable, itemRow, logId } from '../log/keys.ts'
import type { Outgoing } from '../queues/port.ts'
import type { Action, Condition, Row, Value, Write } from '../tables/port.ts'
import { limits } from './check.ts'
import type { StoreContext } from './context.ts'
import { ClaimLost } from './faults.ts'
import type { Closing, Hold, Renewal } from './job.ts'
import { errorKey, jobKey, jobsTable, messageOf, number, paramsKey, resultKey, seconds, stateOf, text } from './keys.ts'
import { type JobEventType, type JobState, step } from './transitions.ts'

export interface Move {
  readonly state: JobState
  readonly write: Write
  /** What to send once the write is done, unless it travels within it. */
  readonly outgoing: readonly Outgoing[]
  readonly notBefore: number | undefined
}

const running: Condition = { test: '=', attribute: 'state', value: 'RUNNING' satisfies JobState }

/** That the row is still in the hands of this attempt. Every write of a worker has it. */
export const heldBy = (attempt: number): Condition => ({
  test: 'all',
  of: [running, { test: '=', attribute: 'attempt', value: attempt }],
})

/** The row of an attempt that is still its worker's; throws otherwise. */
export const assertHeld = ({ emit }: StoreContext, row: Row | undefined, hold: Hold, verb: string): Row => {
  if (row && isHeld(row, hold)) return row
  emit({ name: 'job.fenced', jobId: hold.jobId, attempt: hold.attempt, verb })
  throw new ClaimLost(hold.jobId, hold.attempt)
}

export const isHeld = (row: Row, hold: Hold): boolean =>
  stateOf(row) === 'RUNNING' && number(row, 'attempt') === hold.attempt

/** What a worker is told whenever it says something. */
export const renewalOf = (row: Row | undefined): Renewal => {
  const watched = row?.['watched_until']
  return {
    cancelRequested: row?.['cancel_requested_at'] !== undefined,
    watchedUntil: typeof watched === 'number' ? watched : undefined,
  }
}

/** No write returns a job to SCHEDULED that somebody asked to stop. */
export const notCancelled: Condition = { test: 'lacks', attribute: 'cancel_requested_at' }

/** Back to SCHEDULED, to be claimed again from `notBefore` on. */
export const moveBack = (
  context: StoreContext,
  row: Row,
  move: {
    readonly event: JobEventType
    readonly if: Condition
    readonly notBefore: number
    readonly set?: Row
    readonly add?: Readonly<Record<string, number>>
    readonly remove?: readonly string[]
    readonly closing?: Closing
  },
): Move => {
  const { queue, clock, options } = context
  const jobId = text(row, 'job_id')
  const outgoing: Outgoing = { message: messageOf(row), notBefore: move.notBefore }
  const state = step(stateOf(row), move.event)
  const update: Action = {
    kind: 'update',
    table: jobsTable.name,
    key: jobKey(jobId),
    set: {
      state,
      not_before: move.notBefore,
      updated_at: clock.now(),
      sends: 0,
      ...(queue.within ? {} : { due_at: move.notBefore + options.outboxDelayMs }),
      ...move.set,
    },
    ...(move.add ? { add: move.add } : {}),
    remove: ['worker_id', ...(queue.within ? ['due_at'] : []), ...(move.remove ?? [])],
    // A redrive takes the mark away, so it may be there before.
    if: move.event === 'redriven' ? move.if : { test: 'all', of: [move.if, notCancelled] },
    keep: true,
  }
  const attempt = number(row, 'attempt')
  const closing = closingActions(context, logId(jobId, attempt), move.closing)
  const actions = [update, ...closing, ...(queue.within ? [queue.within.send(outgoing)] : [])]
  return { state, write: { actions, lane: 'urgent' }, outgoing: [outgoing], notBefore: move.notBefore }
}

/** To an end: COMPLETED, FAILED or CANCELLED, with what is known of it and the time until it is forgotten. */
export const moveToEnd = (
  context: StoreContext,
  row: Row,
  move: {
    readonly event: JobEventType
    readonly if: Condition
    readonly result?: string
    readonly error?: string
    readonly add?: Readonly<Record<string, number>>
    readonly closing?: Closing
  },
): Move => {
  const { clock, options } = context
  const jobId = text(row, 'job_id')
  const now = clock.now()
  const state = step(stateOf(row), move.event)
  // A request id must not outlive the job it stands for. not_before only ever rises, so this is late enough.
  const forgetAt = Math.max(now + options.retentionMs, number(row, 'not_before') + options.requestRetentionMs)
  const ttl = seconds(forgetAt)
  const set: Record<string, Value> = { state, updated_at: now, ttl }
  const update: Action = {
    kind: 'update',
    table: jobsTable.name,
    key: jobKey(jobId),
    set,
    remove: ['due_at', 'watched_until'],
    if: move.if,
    ...(move.add ? { add: move.add } : {}),
  }
  const attempt = number(row, 'attempt')
  const actions = [update, ...closingActions(context, logId(jobId, attempt), move.closing)]
  if (move.result !== undefined) placeText(set, actions, 'result', move.result, resultKey(jobId, attempt)[0], ttl)
  if (move.error !== undefined) placeText(set, actions, 'error', move.error, errorKey(jobId, attempt)[0], ttl)
  const paramsAreOutside = row['params'] === undefined
  if (paramsAreOutside) {
    actions.push({ kind: 'update', table: jobsTable.name, key: paramsKey(jobId), set: { ttl } })
  }
  return { state, write: { actions, lane: 'urgent' }, outgoing: [], notBefore: undefined }
}

/** Short texts live in the row, long ones are items of their own, keyed by attempt. */
const placeText = (
  set: Record<string, Value>,
  actions: Action[],
  name: 'result' | 'error',
  value: string,
  key: string,
  ttl: number,
): void => {
  if (Buffer.byteLength(value) <= limits.inlineBytes) set[name] = value
  else {
    set[`${name}_outside`] = true
    actions.push({ kind: 'put', table: jobsTable.name, row: { job_id: key, [name]: value, ttl } })
  }
}

const closingActions = (context: StoreContext, log: string, closing: Closing | undefined): Action[] => {
  if (!closing) return []
  const ttl = logTtl(context)
  const put = (item: StoredItem): Action => ({ kind: 'put', table: eventsTable.name, row: itemRow(log, item, ttl) })
  return closing.output.length === 0 ? [put(closing.end)] : [...closing.output.map(put), put(closing.end)]
}

/** The second after which what is stored of a log now is rubbish. */
export const logTtl = ({ clock, options }: StoreContext): number => seconds(clock.now() + options.logRetentionMs)
