import { timestampFromMs } from '@bufbuild/protobuf/wkt'
import { createClient, type Transport } from '@connectrpc/connect'
import { JobService } from '../../api/gen/millrace/v1/service_pb.js'
import type { Cancelled } from '../jobs/cancel.ts'
import type { Enqueued, EnqueueRequest, Job } from '../jobs/job.ts'
import type { JobPage, ListRequest as StoreListRequest } from '../jobs/list.ts'
import { type Fault, isFault } from '../kernel/fault.ts'
import type { Ids } from '../kernel/ids.ts'
import type { DeadLetter } from '../queues/port.ts'
import type { Call } from './caller.ts'
import { enqueue, enqueueMany } from './enqueue.ts'
import { jobOf, stateOf, wireState } from './job-wire.ts'
import { candidatesMax, resolveId } from './resolve-id.ts'

export interface ListRequest extends Partial<StoreListRequest> {
  /** Only ids that begin so. */
  readonly idPrefix?: string
}

/** For those who have work done. Every call may fail with a fault; branch on its code. */
export interface Jobs {
  /** Resolves if a server answers within the time and knows us; otherwise throws what stands in the way. */
  probe(withinMs: number): Promise<void>
  /** Any number of tries make one job; a request id is made if there is none. */
  enqueue(request: EnqueueRequest): Promise<Enqueued>
  /** An answer for each request, in order. Sent in as many calls as it takes. */
  enqueueMany(requests: readonly EnqueueRequest[]): Promise<readonly (Enqueued | Fault)[]>
  get(jobId: string): Promise<Job>
  /** All jobs that fit, fetched page by page as they are asked for. `limit` is the size of a page. */
  list(request?: ListRequest): AsyncGenerator<Job, void, void>
  /** The same page by page; a page can be empty. */
  listPages(request?: ListRequest): AsyncGenerator<JobPage, void, void>
  /** The job that an abbreviated id means. ID_AMBIGUOUS lists the jobs if there are several. */
  resolveId(prefix: string): Promise<string>
  cancel(jobId: string): Promise<Cancelled>
  /** Starts an ended job again, once: `run` is the run that the caller saw, or whichever there is now. */
  retry(jobId: string, run?: number): Promise<{ readonly run: number }>
  deadLetters(queue: string, limit: number): Promise<readonly DeadLetter[]>
}

export interface JobsDeps {
  readonly transport: Transport
  readonly call: Call
  readonly ids: Ids
}

/** An id that no job has. */
const nobody = '00000000-0000-0000-0000-000000000000'

export const createJobs = (deps: JobsDeps): Jobs => {
  const { call, ids } = deps
  const service = createClient(JobService, deps.transport)

  const get = (jobId: string): Promise<Job> =>
    call({ twice: 'safe' }, async (options) => jobOf((await service.getJob({ jobId }, options)).job))

  async function* listPages(request: ListRequest = {}): AsyncGenerator<JobPage, void, void> {
    let pageToken = request.cursor ?? ''
    do {
      const asked = { ...wireListing(request), pageToken }
      const page = await call({ twice: 'safe' }, async (options) => {
        const { jobs, nextPageToken } = await service.listJobs(asked, options)
        return { jobs: jobs.map(jobOf), ...(nextPageToken ? { cursor: nextPageToken } : {}) }
      })
      yield page
      pageToken = page.cursor ?? ''
    } while (pageToken)
  }

  async function* list(request: ListRequest = {}): AsyncGenerator<Job, void, void> {
    for await (const { jobs } of listPages(request)) yield* jobs
  }

  return {
    probe: async (withinMs) => {
      const asked = call({ twice: 'safe', deadlineMs: withinMs }, (options) =>
        service.getJob({ jobId: nobody }, options),
      )
      await asked.catch((error: unknown) => {
        // Whoever says that there is no such job is there, and has let us in.
        if (!isFault(error) || error.code !== 'JOB_UNKNOWN') throw error
      })
    },
    enqueue: (request) => enqueue({ service, call, ids }, request),
    enqueueMany: (requests) => enqueueMany({ service, call, ids }, requests),
    get,
    list,
    listPages,
    resolveId: (given) => resolveId(given, (idPrefix) => list({ idPrefix, limit: candidatesMax + 1 })),
    cancel: (jobId) =>
      call({ twice: 'safe' }, async (options) => {
        const { state, requested } = await service.cancelJob({ jobId }, options)
        return { state: stateOf(state), requested }
      }),
    retry: async (jobId, run) => {
      // A run is always named: without one, a repetition after a lost answer could start the job a second time.
      const seen = run ?? (await get(jobId)).run
      return call({ twice: 'safe' }, async (options) => {
        const answer = await service.retryJob({ jobId, run: seen }, options)
        return { run: answer.run }
      })
    },
    deadLetters: (queue, limit) =>
      call({ twice: 'safe' }, async (options) => {
        const { letters } = await service.listDeadLetters({ queue, limit }, options)
        return letters.map(({ body, reason }) => ({ body, reason }))
      }),
  }
}

const wireListing = ({ queue = '', state, from, to, ascending = false, limit = 0, idPrefix = '' }: ListRequest) => ({
  queue,
  state: wireState(state),
  ...(from === undefined ? {} : { from: timestampFromMs(from) }),
  ...(to === undefined ? {} : { to: timestampFromMs(to) }),
  ascending,
  pageSize: limit,
  idPrefix,
})
