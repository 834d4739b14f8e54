import type { Notices } from '../jobs/notices.ts'
import type { JobStore } from '../jobs/store.ts'
import type { StoredItem } from '../log/event.ts'
import { logId } from '../log/keys.ts'
import type { WorkerService } from './service.ts'

/** What the worker stored is told to those who follow it in this process: only now, because only now is it durable. */
export type Stored = (log: string, items: readonly StoredItem[]) => void

/** The store as a worker in the same process sees it. */
export const createLocalService = (deps: {
  readonly store: JobStore
  readonly notices: Notices
  readonly stored: Stored
}): WorkerService => {
  const { store, notices, stored } = deps
  return {
    claim: async (request) => {
      const claims = await store.claim(request)
      for (const { hold } of claims) notices.tell(hold.jobId, { changed: true })
      return claims
    },
    renew: (hold) => store.renew(hold),
    publish: async (hold, items) => {
      const renewal = await store.publish(hold, items)
      stored(logId(hold.jobId, hold.attempt), items)
      return renewal
    },
    settle: async (hold, outcome, closing) => {
      const settled = await store.settle(hold, outcome, closing)
      stored(logId(hold.jobId, hold.attempt), [...closing.output, closing.end])
      notices.tell(hold.jobId, { changed: true })
      return settled
    },
    release: async (hold) => {
      const settled = await store.release(hold)
      notices.tell(hold.jobId, { changed: true })
      return settled
    },
    listen: (hold, listener) =>
      notices.listen(hold.jobId, ({ cancelRequested = false, watchedUntil }) => {
        if (cancelRequested || watchedUntil !== undefined) listener({ cancelRequested, watchedUntil })
      }),
  }
}
