// Settling: the last output, PROCESS_END and the job row in one transaction.
// S1  A settle that had taken effect is recognised by its PROCESS_END: the same bytes are success, others are refused.
// S2  No settle returns a job to SCHEDULED that somebody asked to stop: it becomes CANCELLED instead.
// S3  Counts decide between another attempt and the end, and they are read from the row that the condition pins.

import { assert, unreachable } from '../kernel/assert.ts'
import { ceilingAfter } from '../kernel/retry.ts'
import type { StoredItem } from '../log/event.ts'
import { eventsTable, itemOf, logId } from '../log/keys.ts'
import type { Row } from '../tables/port.ts'
import { checkJson, checkWhole, limits, shortenError } from './check.ts'
import { decide, read, readJobRow, type StoreContext, sendAfter } from './context.ts'
import { ClaimLost } from './faults.ts'
import type { Closing, Hold, Json, Outcome, Settled } from './job.ts'
import { count, number, stateOf } from './keys.ts'
import { heldBy, isHeld, type Move, moveBack, moveToEnd } from './moves.ts'

/** Cancel marks can arrive between our read and our write, but only once: this is plenty. */
const roundsMax = 3

export const settle = async (
  context: StoreContext,
  hold: Hold,
  outcome: Outcome,
  closing: Closing,
): Promise<Settled> => {
  checkOutcome(outcome)
  for (let round = 0; round < roundsMax; round++) {
    const row = await readJobRow(context, hold.jobId)
    if (!row || !isHeld(row, hold)) return settledBefore(context, hold, closing, row)
    const move = moveFor(context, row, outcome, closing)
    const settled = await carryOut(context, hold, move)
    if (settled) return settled
  }
  assert(false, `job ${hold.jobId} changed under every settle`)
}

/** Gives the job back untouched, because the worker drains. Counts nothing. */
export const release = async (context: StoreContext, hold: Hold): Promise<Settled> => {
  for (let round = 0; round < roundsMax; round++) {
    const row = await readJobRow(context, hold.jobId)
    if (!row || !isHeld(row, hold)) {
      // Our own release whose answer was lost looks like this, and so does an expiry: either way the job is free again.
      if (row && stateOf(row) === 'SCHEDULED' && number(row, 'attempt') === hold.attempt) {
        return { state: 'SCHEDULED', notBefore: number(row, 'not_before') }
      }
      throw fenced(context, hold, 'release')
    }
    const move = isMarked(row)
      ? moveToEnd(context, row, { event: 'cancelled', if: heldBy(hold.attempt) })
      : moveBack(context, row, { event: 'released', if: heldBy(hold.attempt), notBefore: context.clock.now() })
    const settled = await carryOut(context, hold, move)
    if (settled) return settled
  }
  assert(false, `job ${hold.jobId} changed under every release`)
}

/** Undefined if the row changed meanwhile. */
const carryOut = (context: StoreContext, hold: Hold, move: Move): Promise<Settled | undefined> =>
  decide(context, move.write).then((decided) => {
    if (decided.kind === 'refused') return undefined
    context.emit({ name: 'job.settled', ...hold, state: move.state })
    const settled: Settled = { state: move.state, notBefore: move.notBefore }
    return sendAfter(context, move.outgoing)?.then(() => settled) ?? settled
  })

const isMarked = (row: Row): boolean => row['cancel_requested_at'] !== undefined

const checkOutcome = (outcome: Outcome): void => {
  if (outcome.kind === 'later') checkWhole('inMs', outcome.inMs, 0, limits.delayMs)
  if (outcome.kind === 'done' && outcome.result !== undefined) checkJson('result', outcome.result)
}

/** What becomes of the job: the machine's event, from the outcome and the counts in the row. */
const moveFor = (context: StoreContext, row: Row, outcome: Outcome, closing: Closing): Move => {
  const held = heldBy(number(row, 'attempt'))
  const end = (
    event: 'completed' | 'failed' | 'cancelled',
    rest: { result?: string; error?: string; add?: Record<string, number> } = {},
  ) => moveToEnd(context, row, { event, if: held, closing, ...rest })
  switch (outcome.kind) {
    case 'done': {
      const result = resultText(outcome.result)
      return 'error' in result ? end('failed', { error: result.error }) : end('completed', result)
    }
    case 'giveUp':
      return end('failed', { error: shortenError(outcome.error), add: { failed_attempts: 1 } })
    case 'cancelled':
      return end('cancelled')
    case 'failed':
      return moveForFailure(context, row, shortenError(outcome.error), closing)
    case 'later': {
      if (isMarked(row)) return end('cancelled')
      const postponed = count(row, 'postponed') + 1
      if (postponed > limits.postponed) return end('failed', { error: `postponed more than ${limits.postponed} times` })
      const notBefore = context.clock.now() + outcome.inMs
      return moveBack(context, row, { event: 'postponed', if: held, notBefore, add: { postponed: 1 }, closing })
    }
    default:
      return unreachable(outcome)
  }
}

/** A failed attempt with attempts left goes back in one write; FAILED is only ever final. */
const moveForFailure = (context: StoreContext, row: Row, error: string, closing: Closing): Move => {
  const held = heldBy(number(row, 'attempt'))
  const failures = count(row, 'failed_attempts') + 1
  const add = { failed_attempts: 1 }
  if (failures >= number(row, 'max_attempts')) {
    return moveToEnd(context, row, { event: 'failed', if: held, error, add, closing })
  }
  if (isMarked(row)) return moveToEnd(context, row, { event: 'cancelled', if: held, error, add, closing })
  const policy = {
    attemptsMax: number(row, 'max_attempts'),
    baseMs: number(row, 'backoff_base_ms'),
    capMs: number(row, 'backoff_cap_ms'),
  }
  // Between a half and the whole of the ceiling: spread out, but never at once after a failure.
  const wait = Math.floor(ceilingAfter(policy, failures) * (0.5 + context.random.next() / 2))
  return moveBack(context, row, { event: 'retried', if: held, notBefore: context.clock.now() + wait, add, closing })
}

const resultText = (result: Json | undefined): { result?: string } | { error: string } => {
  if (result === undefined) return {}
  const stored = JSON.stringify(result)
  const bytes = Buffer.byteLength(stored)
  return bytes > limits.resultBytes
    ? { error: `the result takes ${bytes} bytes, more than the ${limits.resultBytes} allowed` }
    : { result: stored }
}

/** S1: success if this very settle had taken effect before. */
const settledBefore = async (
  context: StoreContext,
  hold: Hold,
  closing: Closing,
  row: Row | undefined,
): Promise<Settled> => {
  const log = logId(hold.jobId, hold.attempt)
  const stored = await read(context, () => context.tables.get(eventsTable.name, [log, closing.end.sequence]))
  if (!row || !stored || !isSameItem(itemOf(stored), closing.end)) throw fenced(context, hold, 'settle')
  const moved = stateOf(row) === 'SCHEDULED' && number(row, 'attempt') === hold.attempt
  return { state: stateOf(row), notBefore: moved ? number(row, 'not_before') : undefined }
}

const fenced = (context: StoreContext, hold: Hold, verb: string): ClaimLost => {
  context.emit({ name: 'job.fenced', jobId: hold.jobId, attempt: hold.attempt, verb })
  return new ClaimLost(hold.jobId, hold.attempt)
}

const isSameItem = (a: StoredItem | undefined, b: StoredItem): boolean =>
  a !== undefined &&
  a.sequence === b.sequence &&
  a.type === b.type &&
  a.encoding === b.encoding &&
  Buffer.compare(a.payload, b.payload) === 0
