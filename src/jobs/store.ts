import type { Fault } from '../kernel/fault.ts'
import type { StoredItem } from '../log/event.ts'
import { type Cancelled, cancel } from './cancel.ts'
import { type ClaimRequest, claim, claimJob, type NotClaimed } from './claim.ts'
import type { StoreContext } from './context.ts'
import { enqueue, enqueueMany } from './enqueue.ts'
import type { Claim, Closing, Enqueued, EnqueueRequest, Hold, Job, Outcome, Renewal, Settled } from './job.ts'
import { type JobPage, type ListRequest, listJobs } from './list.ts'
import { publish } from './publish.ts'
import { getJob } from './read.ts'
import { redrive } from './redrive.ts'
import { renew } from './renew.ts'
import { release, settle } from './settle.ts'
import type { Signer } from './signer.ts'
import { createSweep, type Sweep } from './sweep.ts'
import { watch } from './watch.ts'

/** Jobs, durably: one implementation over any tables and any queue. */
export interface JobStore {
  enqueue(request: EnqueueRequest): Promise<Enqueued>
  enqueueMany(requests: readonly EnqueueRequest[]): Promise<readonly (Enqueued | Fault)[]>
  claim(request: ClaimRequest): Promise<readonly Claim[]>
  /** Takes this very job, if it is ready. */
  claimJob(jobId: string, workerId: string): Promise<Claim | NotClaimed>
  /** The heartbeat. */
  renew(hold: Hold): Promise<Renewal>
  /** Stores entries of the attempt's log. */
  publish(hold: Hold, items: readonly StoredItem[]): Promise<Renewal>
  settle(hold: Hold, outcome: Outcome, closing: Closing): Promise<Settled>
  release(hold: Hold): Promise<Settled>
  cancel(jobId: string): Promise<Cancelled>
  /** Marks the job as watched for a while. */
  watch(jobId: string): Promise<void>
  redrive(jobId: string, run: number): Promise<{ readonly run: number }>
  get(jobId: string): Promise<Job>
  list(request: ListRequest): Promise<JobPage>
  readonly sweep: Sweep
}

export const createStore = (deps: StoreContext & { readonly signer: Signer }): JobStore => ({
  enqueue: (request) => enqueue(deps, request),
  enqueueMany: (requests) => enqueueMany(deps, requests),
  claim: (request) => claim(deps, request),
  claimJob: (jobId, workerId) => claimJob(deps, jobId, workerId),
  renew: (hold) => renew(deps, hold),
  publish: (hold, items) => publish(deps, hold, items),
  settle: (hold, outcome, closing) => settle(deps, hold, outcome, closing),
  release: (hold) => release(deps, hold),
  cancel: (jobId) => cancel(deps, jobId),
  watch: (jobId) => watch(deps, jobId),
  redrive: (jobId, run) => redrive(deps, jobId, run),
  get: (jobId) => getJob(deps, jobId),
  list: (request) => listJobs(deps, deps.signer, request),
  sweep: createSweep(deps),
})
