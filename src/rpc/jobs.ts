// JobService: translate, call the store, translate back.

import type { ServiceImpl } from '@connectrpc/connect'
import type { JobService, ListJobsRequest } from '../../api/gen/millrace/v1/service_pb.js'
import { checkWhole } from '../jobs/check.ts'
import { InputInvalid } from '../jobs/faults.ts'
import type { EnqueueRequest } from '../jobs/job.ts'
import type { JobPage, ListRequest } from '../jobs/list.ts'
import type { JobStore } from '../jobs/store.ts'
import type { Clock } from '../kernel/clock.ts'
import { isFault } from '../kernel/fault.ts'
import { listByPrefix } from './list-by-prefix.ts'
import { toErrorInfo } from './to-connect-error.ts'
import { fromEnqueued, fromJob, fromState, toEnqueueRequest, toState } from './translate-job.ts'
import { toMs } from './translate-number.ts'

export interface JobDeps {
  readonly clock: Pick<Clock, 'now'>
  readonly store: Pick<JobStore, 'enqueue' | 'enqueueMany' | 'get' | 'list' | 'cancel' | 'redrive'>
  /** What a person finds aside, oldest first. */
  readonly deadLetters: (
    queue: string,
    limit: number,
  ) => Promise<readonly { readonly body: string; readonly reason: string }[]>
}

const pageSizeDefault = 100
const pageSizeMax = 1_000
const lettersDefault = 100

export const createJobService = (deps: JobDeps): ServiceImpl<typeof JobService> => {
  const { store } = deps
  return {
    enqueueJob: async (request) => fromEnqueued(await store.enqueue(toEnqueueRequest(request))),
    enqueueJobs: async ({ jobs }) => {
      // A request that cannot even be translated is refused alone, like one that the store refuses.
      const requests = jobs.map((job) => attempt(() => toEnqueueRequest(job)))
      const good = requests.filter((request): request is EnqueueRequest => !isFault(request))
      const answers = good.length > 0 ? await store.enqueueMany(good) : []
      let next = 0
      return {
        answers: requests.map((request) => {
          const answer = isFault(request) ? request : answers[next++]
          return isFault(answer)
            ? { outcome: { case: 'refused' as const, value: toErrorInfo(answer) } }
            : { outcome: { case: 'made' as const, value: fromEnqueued(answer as NonNullable<typeof answer>) } }
        }),
      }
    },
    getJob: async ({ jobId }) => ({ job: fromJob(await store.get(jobId)) }),
    listJobs: async (request) => {
      const { jobs, cursor } = await list(deps, request)
      return { jobs: jobs.map(fromJob), nextPageToken: cursor ?? '' }
    },
    cancelJob: async ({ jobId }) => {
      const { state, requested } = await store.cancel(jobId)
      return { state: fromState(state), requested }
    },
    retryJob: async ({ jobId, run }) => store.redrive(jobId, run === 0 ? (await store.get(jobId)).run : run),
    listDeadLetters: async ({ queue, limit }) => {
      checkWhole('limit', limit, 0, pageSizeMax)
      return { letters: (await deps.deadLetters(queue || 'default', limit || lettersDefault)).map(copy) }
    },
  }
}

const copy = ({ body, reason }: { readonly body: string; readonly reason: string }) => ({ body, reason })

const attempt = <T>(work: () => T): T | InputInvalid => {
  try {
    return work()
  } catch (error) {
    if (error instanceof InputInvalid) return error
    throw error
  }
}

const list = (deps: JobDeps, request: ListJobsRequest): Promise<JobPage> => {
  const state = toState('state', request.state)
  const from = toMs('from', request.from)
  const to = toMs('to', request.to)
  const limit = request.pageSize || pageSizeDefault
  checkWhole('pageSize', limit, 1, pageSizeMax)
  const asked: ListRequest = {
    limit,
    ascending: request.ascending,
    ...(request.queue ? { queue: request.queue } : {}),
    ...(state === undefined ? {} : { state }),
    ...(from === undefined ? {} : { from }),
    ...(to === undefined ? {} : { to }),
    ...(request.pageToken ? { cursor: request.pageToken } : {}),
  }
  return request.idPrefix ? listByPrefix(deps, asked, request.idPrefix) : deps.store.list(asked)
}
