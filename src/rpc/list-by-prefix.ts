// Jobs whose ids begin with something: a range of times where the ids tell one, read through in bounded steps.

import type { Job } from '../jobs/job.ts'
import type { JobPage, ListRequest } from '../jobs/list.ts'
import type { JobStore } from '../jobs/store.ts'
import type { Clock } from '../kernel/clock.ts'
import { isFault } from '../kernel/fault.ts'
import { checkPrefix, isWholeId, type TimeRange, timesOf } from './id-prefix.ts'

export interface PrefixDeps {
  readonly clock: Pick<Clock, 'now'>
  readonly store: Pick<JobStore, 'list' | 'get'>
}

/** Jobs that are looked at in one step, and steps of one call before it answers with what it has. */
const stepJobs = 1_000
const stepsMax = 10

export const listByPrefix = async (deps: PrefixDeps, asked: ListRequest, prefix: string): Promise<JobPage> => {
  checkPrefix(prefix)
  if (isWholeId(prefix)) return one(deps, asked, prefix)
  const times = timesOf(prefix, deps.clock.now())
  const { cursor: first, ...rest } = times ? { ...asked, ...within(asked, times) } : asked
  const jobs: Job[] = []
  let cursor = first
  for (let step = 0; step < stepsMax && jobs.length < asked.limit; step++) {
    const from = cursor === undefined ? rest : { ...rest, cursor }
    const room = asked.limit - jobs.length
    let page = await deps.store.list({ ...from, limit: stepJobs })
    const places = page.jobs.flatMap((job, place) => (job.id.startsWith(prefix) ? [place] : []))
    const last = places[room - 1]
    // More than there is room for: the page is read again so that it ends with the last one that we give, and its cursor there.
    if (places.length > room && last !== undefined) page = await deps.store.list({ ...from, limit: last + 1 })
    jobs.push(...page.jobs.filter((job) => job.id.startsWith(prefix)).slice(0, room))
    cursor = page.cursor
    if (cursor === undefined) break
  }
  return cursor === undefined ? { jobs } : { jobs, cursor }
}

const one = async ({ store }: PrefixDeps, asked: ListRequest, jobId: string): Promise<JobPage> => {
  try {
    const job = await store.get(jobId)
    const isWanted =
      (asked.queue === undefined || asked.queue === job.queue) &&
      (asked.state === undefined || asked.state === job.state) &&
      job.createdAt >= (asked.from ?? 0) &&
      job.createdAt <= (asked.to ?? Number.POSITIVE_INFINITY)
    return { jobs: isWanted ? [job] : [] }
  } catch (error) {
    if (isFault(error) && error.code === 'JOB_UNKNOWN') return { jobs: [] }
    throw error
  }
}

/** Nothing in it moves with the clock: a cursor belongs to its filters, which must be the same on every page. */
const within = ({ from = 0, to = Number.MAX_SAFE_INTEGER }: ListRequest, times: TimeRange) => ({
  from: Math.max(from, times.from),
  to: Math.min(to, times.to),
})
