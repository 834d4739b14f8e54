import { executionOptions, retryOptions } from '../../src/config/sections/jobs.ts'
import { ClaimLost } from '../../src/jobs/faults.ts'
import type { Claim, EnqueueRequest, Hold, Job, JobParams, Outcome, Renewal } from '../../src/jobs/job.ts'
import type { StoredItem } from '../../src/log/event.ts'
import type { WorkerService } from '../../src/worker/service.ts'
import { type Entry, entryOf } from './memory-log.ts'

/** A store of a few lines, for tests in which the store is not the point: everything in memory, and events to wait for. */
export interface MemoryService extends WorkerService {
  submit(params: JobParams, request?: Partial<EnqueueRequest>): string
  cancel(jobId: string): void
  /** From now on nothing of this job is taken, and whoever holds it hears so at once. */
  fence(jobId: string): void
  /** Publishing takes a while from now on. */
  slowDown(): void
  events(jobId: string): readonly Entry[]
  released(jobId: string): boolean
  /** Resolves with the first output. */
  output(jobId: string): Promise<string>
  ended(jobId: string): Promise<{ outcome: Outcome; events: readonly Entry[]; end: Record<string, unknown> }>
}

interface Known {
  readonly claim: Claim
  readonly items: StoredItem[]
  outcome: Outcome | undefined
  released: boolean
  cancelRequested: boolean
  fenced: boolean
  listener: ((renewal: Renewal) => void) | undefined
}

export const createMemoryService = (): MemoryService => {
  const jobs = new Map<string, Known>()
  const waiting: Known[] = []
  let wakers: (() => void)[] = []
  let isSlow = false
  let ids = 0

  const changed = (): void => {
    const all = wakers
    wakers = []
    for (const wake of all) wake()
  }
  const change = (): Promise<void> => new Promise((resolve) => void wakers.push(resolve))
  const known = (jobId: string): Known => {
    const job = jobs.get(jobId)
    if (!job) throw new Error(`no job ${jobId}`)
    return job
  }
  const held = (hold: Hold): Known => {
    const job = known(hold.jobId)
    if (job.fenced) throw new ClaimLost(hold.jobId, hold.attempt)
    return job
  }
  const renewal = ({ cancelRequested }: Known): Renewal => ({ cancelRequested, watchedUntil: undefined })

  const service: MemoryService = {
    submit: (params, request = {}) => {
      ids += 1
      const id = `job-${ids}-${Math.random()}`
      const job = {
        id,
        queue: 'default',
        attempt: 1,
        params,
        timeoutMs: request.timeoutMs,
        execution: executionOptions.parse({ leaseMs: 6_000, heartbeatMs: 1_000, ...request.execution }),
        retry: retryOptions.parse({}),
      } as unknown as Job
      const claim = { job, hold: { jobId: id, queue: 'default', attempt: 1 } }
      const entry: Known = {
        claim,
        items: [],
        outcome: undefined,
        released: false,
        cancelRequested: false,
        fenced: false,
        listener: undefined,
      }
      jobs.set(id, entry)
      waiting.push(entry)
      changed()
      return id
    },
    claim: async ({ max, signal }) => {
      signal?.addEventListener('abort', changed)
      while (waiting.length === 0 && signal?.aborted !== true) await change()
      return waiting.splice(0, max).map(({ claim }) => claim)
    },
    renew: async (hold) => renewal(held(hold)),
    publish: async (hold, items) => {
      if (isSlow) await new Promise((resolve) => setTimeout(resolve, 2))
      const job = held(hold)
      job.items.push(...items)
      changed()
      return renewal(job)
    },
    settle: async (hold, outcome, { output, end }) => {
      const job = held(hold)
      job.items.push(...output, end)
      job.outcome = outcome
      changed()
      return { state: 'COMPLETED', notBefore: undefined }
    },
    release: async (hold) => {
      held(hold).released = true
      changed()
      return { state: 'SCHEDULED', notBefore: undefined }
    },
    listen: (hold, listener) => {
      known(hold.jobId).listener = listener
      return () => {
        known(hold.jobId).listener = undefined
      }
    },
    cancel: (jobId) => {
      const job = known(jobId)
      job.cancelRequested = true
      job.listener?.(renewal(job))
    },
    fence: (jobId) => {
      known(jobId).fenced = true
    },
    slowDown: () => {
      isSlow = true
    },
    events: (jobId) => known(jobId).items.map(entryOf),
    released: (jobId) => known(jobId).released,
    output: async (jobId) => {
      for (;;) {
        const first = service.events(jobId).find(({ type }) => type === 1)
        if (first) return String(first.data['text'])
        await change()
      }
    },
    ended: async (jobId) => {
      while (known(jobId).outcome === undefined) await change()
      const events = service.events(jobId)
      return { outcome: known(jobId).outcome as Outcome, events, end: events.at(-1)?.data ?? {} }
    },
  }
  return service
}
