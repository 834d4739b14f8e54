// Own jobs: a worker service that offers only the jobs it was told of, whatever else waits in the queue. For a process that runs
// what it was asked to run and leaves what others left to others.

import type { NotClaimed } from '../jobs/claim.ts'
import type { Claim, Settled } from '../jobs/job.ts'
import { isEnded } from '../jobs/transitions.ts'
import { type Clock, sleep } from '../kernel/clock.ts'
import { isFault } from '../kernel/fault.ts'
import type { WorkerService } from './service.ts'

export interface OwnJobs extends WorkerService {
  /** From now on this job is offered, until it has ended. */
  add(jobId: string, queue: string): void
  /** How many have not ended yet. */
  readonly left: number
}

interface Own {
  readonly queue: string
  isTaken: boolean
  /** Wall time before which asking is of no use. */
  notBefore: number
}

export const createOwnJobs = (deps: {
  readonly clock: Clock
  readonly service: WorkerService
  readonly claimJob: (jobId: string, workerId: string) => Promise<Claim | NotClaimed>
}): OwnJobs => {
  const { clock, service } = deps
  const jobs = new Map<string, Own>()
  let changed = new AbortController()
  /** Whoever waits for a job looks again. */
  const wake = (): void => {
    changed.abort()
    changed = new AbortController()
  }

  const take = async (jobId: string, own: Own, workerId: string): Promise<Claim | undefined> => {
    own.isTaken = true
    try {
      const answer = await deps.claimJob(jobId, workerId)
      if ('hold' in answer) return answer
      follow(jobId, answer)
    } catch (error) {
      own.isTaken = false
      if (!isFault(error) || error.code !== 'JOB_UNKNOWN') throw error
      // Its retention has passed: asking again would never help.
      jobs.delete(jobId)
    }
    return undefined
  }

  const follow = (jobId: string, { state, notBefore }: Settled): void => {
    const own = jobs.get(jobId)
    if (!own) return
    // RUNNING: somebody else has it, and gives it back or ends it.
    if (isEnded(state) || state === 'RUNNING') jobs.delete(jobId)
    else {
      own.isTaken = false
      own.notBefore = notBefore ?? 0
    }
    wake()
  }

  const waiting = (queue: string): readonly [string, Own][] =>
    [...jobs].filter(([, own]) => own.queue === queue && !own.isTaken)

  return {
    ...service,
    add: (jobId, queue) => {
      if (!jobs.has(jobId)) jobs.set(jobId, { queue, isTaken: false, notBefore: 0 })
      wake()
    },
    get left() {
      return jobs.size
    },
    claim: async ({ queue, workerId, max, waitMs, signal }) => {
      const until = clock.monotonic() + waitMs
      for (;;) {
        const claims: Claim[] = []
        const now = clock.now()
        const ready = waiting(queue).filter(([, own]) => own.notBefore <= now)
        for (const [jobId, own] of ready.slice(0, max)) {
          const claim = await take(jobId, own, workerId)
          if (claim) claims.push(claim)
        }
        const restMs = until - clock.monotonic()
        if (claims.length > 0 || restMs <= 0 || signal?.aborted) return claims
        const nextMs = Math.min(...waiting(queue).map(([, own]) => own.notBefore - clock.now()))
        const stop = signal ? AbortSignal.any([signal, changed.signal]) : changed.signal
        await sleep(clock, Math.max(0, Math.min(restMs, nextMs)), stop)
      }
    },
    settle: async (hold, outcome, closing) => {
      const settled = await service.settle(hold, outcome, closing)
      follow(hold.jobId, settled)
      return settled
    },
    release: async (hold) => {
      const settled = await service.release(hold)
      // Given back for whoever comes next; this process is on its way out.
      jobs.delete(hold.jobId)
      wake()
      return settled
    },
  }
}
