// Expiry: taking a job from a worker that is not heard from. The condition is the pair (attempt, renewals) that was seen; a
// heartbeat or a settle that comes first makes it fail, and then the worker was alive after all.

import { eventsTable, logId } from '../log/keys.ts'
import type { Condition, Row } from '../tables/port.ts'
import { limits } from './check.ts'
import { decide, read, type StoreContext, sendAfter } from './context.ts'
import { count, number, stateOf, text } from './keys.ts'
import { heldBy, type Move, moveBack, moveToEnd } from './moves.ts'

/** Whether the attempt was expired. The row was read before, and says which pair of attempt and renewals is meant. */
export const expire = async (context: StoreContext, row: Row): Promise<boolean> => {
  const attempt = number(row, 'attempt')
  const seen: Condition = {
    test: 'all',
    of: [heldBy(attempt), { test: '=', attribute: 'renewals', value: number(row, 'renewals') }],
  }
  const move = await moveFor(context, row, seen)
  const decided = await decide(context, move.write)
  if (decided.kind === 'refused') {
    // The one thing that stops it and is not a sign of life: somebody asked the job to stop meanwhile.
    const marked = decided.row?.['cancel_requested_at'] !== undefined && row['cancel_requested_at'] === undefined
    return marked && decided.row && isSamePair(decided.row, row) ? expire(context, decided.row) : false
  }
  context.emit({
    name: 'job.expired',
    jobId: text(row, 'job_id'),
    queue: text(row, 'queue'),
    attempt,
    state: move.state,
  })
  await sendAfter(context, move.outgoing)
  return true
}

const isSamePair = (a: Row, b: Row): boolean =>
  stateOf(a) === 'RUNNING' && a['attempt'] === b['attempt'] && a['renewals'] === b['renewals']

const moveFor = async (context: StoreContext, row: Row, seen: Condition): Promise<Move> => {
  if (row['cancel_requested_at'] !== undefined) return moveToEnd(context, row, { event: 'cancelled', if: seen })
  // A claim that nobody ever heard of may say more about workers than about the job: it has a count of its own.
  const unheard = number(row, 'renewals') === 0 && (await isLogEmpty(context, row))
  const counter = unheard ? 'unheard_claims' : 'lost_attempts'
  const times = count(row, counter) + 1
  const add = { [counter]: 1 }
  if (times >= (unheard ? limits.unheard : limits.lost)) {
    return moveToEnd(context, row, { event: 'lost', if: seen, error: `worker lost ×${times}`, add })
  }
  return moveBack(context, row, { event: 'expired', if: seen, notBefore: context.clock.now(), add })
}

const isLogEmpty = async (context: StoreContext, row: Row): Promise<boolean> => {
  const partition = logId(text(row, 'job_id'), number(row, 'attempt'))
  const page = await read(context, () => context.tables.query(eventsTable.name, { partition, limit: 1 }))
  return page.entries.length === 0
}
