import type { Clock } from '../kernel/clock.ts'
import type { Notices } from './notices.ts'
import type { JobStore } from './store.ts'
import { watchedMs } from './watch.ts'

/** A store that tells whoever runs or watches a job in this process what was just done to it. */
export const tellingStore = (store: JobStore, notices: Notices, clock: Clock): JobStore => ({
  ...store,
  claimJob: async (jobId, workerId) => {
    const claimed = await store.claimJob(jobId, workerId)
    if ('hold' in claimed) notices.tell(jobId, { changed: true })
    return claimed
  },
  cancel: async (jobId) => {
    const cancelled = await store.cancel(jobId)
    notices.tell(jobId, cancelled.requested ? { cancelRequested: true } : { changed: true })
    return cancelled
  },
  watch: async (jobId) => {
    await store.watch(jobId)
    notices.tell(jobId, { watchedUntil: clock.now() + watchedMs })
  },
  redrive: async (jobId, run) => {
    const redriven = await store.redrive(jobId, run)
    notices.tell(jobId, { changed: true })
    return redriven
  },
})
