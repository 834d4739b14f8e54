import { checkJobId } from './check.ts'
import { decide, readJobRow, type StoreContext } from './context.ts'
import { JobUnknown, StoreBusy } from './faults.ts'
import { isEndedRow, jobKey, jobsTable, number, stateOf, text } from './keys.ts'
import { heldBy, moveToEnd } from './moves.ts'
import type { JobState } from './transitions.ts'

/** The state may change under us a few times; more often than this somebody else is in a loop. */
const roundsMax = 10

export interface Cancelled {
  readonly state: JobState
  /** The job is running and was told to stop; its worker settles it as CANCELLED, unless it finishes first. */
  readonly requested: boolean
}

/** A job that waits is CANCELLED at once, one that runs is asked to stop; what has ended stays as it is, and we say so. */
export const cancel = async (context: StoreContext, jobId: string): Promise<Cancelled> => {
  checkJobId(jobId)
  for (let round = 0; round < roundsMax; round++) {
    const row = await readJobRow(context, jobId)
    if (!row) throw new JobUnknown(jobId)
    const state = stateOf(row)
    if (isEndedRow(row)) return { state, requested: false }
    const queue = text(row, 'queue')
    if (state === 'SCHEDULED') {
      const waiting = { test: '=', attribute: 'state', value: 'SCHEDULED' } as const
      const move = moveToEnd(context, row, { event: 'cancelled', if: waiting })
      if ((await decide(context, move.write)).kind === 'refused') continue
      context.emit({ name: 'job.cancelled', jobId, queue, requested: false })
      return { state: move.state, requested: false }
    }
    if (row['cancel_requested_at'] !== undefined) return { state, requested: true }
    const marked = await decide(context, {
      actions: [
        {
          kind: 'update',
          table: jobsTable.name,
          key: jobKey(jobId),
          set: { cancel_requested_at: context.clock.now() },
          if: heldBy(number(row, 'attempt')),
          keep: true,
        },
      ],
    })
    if (marked.kind === 'refused') continue
    context.emit({ name: 'job.cancelled', jobId, queue, requested: true })
    return { state, requested: true }
  }
  throw new StoreBusy(`job ${jobId} changes faster than it can be cancelled`, { retryAfterMs: 1_000 })
}
