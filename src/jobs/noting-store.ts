import { isFault } from '../kernel/fault.ts'
import type { JobStore } from './store.ts'

/** A store that notes what is enqueued through it. */
export const notingStore = (store: JobStore, note: (jobId: string, queue: string) => void): JobStore => ({
  ...store,
  enqueue: async (request) => {
    const answer = await store.enqueue(request)
    note(answer.jobId, request.queue)
    return answer
  },
  enqueueMany: async (requests) => {
    const answers = await store.enqueueMany(requests)
    for (const [index, answer] of answers.entries()) {
      if (!isFault(answer)) note(answer.jobId, requests[index]?.queue as string)
    }
    return answers
  },
})
