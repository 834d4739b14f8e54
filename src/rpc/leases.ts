import type { Hold } from '../jobs/job.ts'
import type { JobStore } from '../jobs/store.ts'

/** How long the leases of attempts are that were claimed here; the job says it for those that were not. */
export const createLeases = (store: Pick<JobStore, 'get'>, entriesMax = 10_000) => {
  const known = new Map<string, number>()
  const keyOf = ({ jobId, attempt }: Hold) => `${jobId}#${attempt}`
  const note = (hold: Hold, leaseMs: number) => {
    const [oldest] = known.keys()
    if (known.size >= entriesMax && oldest !== undefined) known.delete(oldest)
    known.set(keyOf(hold), leaseMs)
  }
  return {
    note,
    of: async (hold: Hold): Promise<number> => {
      const leaseMs = known.get(keyOf(hold)) ?? (await store.get(hold.jobId)).execution.leaseMs
      // Set anew, so that it becomes the youngest.
      known.delete(keyOf(hold))
      note(hold, leaseMs)
      return leaseMs
    },
    forget: (hold: Hold): void => {
      known.delete(keyOf(hold))
    },
  }
}
