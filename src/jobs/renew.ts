import { decide, type StoreContext } from './context.ts'
import { ClaimLost } from './faults.ts'
import type { Hold, Renewal } from './job.ts'
import { jobKey, jobsTable } from './keys.ts'
import { heldBy, renewalOf } from './moves.ts'

/**
 * A worker says that it is still there. Accepted as long as nobody expired the attempt, however late it comes: no two clocks
 * are compared. A renewal that is stored twice does no harm.
 */
export const renew = async (context: StoreContext, hold: Hold): Promise<Renewal> => {
  const decided = await decide(context, {
    actions: [
      {
        kind: 'update',
        table: jobsTable.name,
        key: jobKey(hold.jobId),
        set: { updated_at: context.clock.now() },
        add: { renewals: 1 },
        if: heldBy(hold.attempt),
        keep: true,
      },
    ],
    lane: 'urgent',
  })
  if (decided.kind === 'refused') {
    context.emit({ name: 'job.fenced', jobId: hold.jobId, attempt: hold.attempt, verb: 'renew' })
    throw new ClaimLost(hold.jobId, hold.attempt)
  }
  context.emit({ name: 'job.renewed', jobId: hold.jobId, queue: hold.queue })
  return renewalOf(decided.row)
}
