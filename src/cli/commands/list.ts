import { sleep } from '../../kernel/clock.ts'
import type { CliContext } from '../context.ts'
import { exitCodeOfSignal, exitCodes } from '../exit-codes.ts'
import type { JobState } from '../job-words.ts'
import type { JobsClient, JobView, ListRequest } from '../jobs-client.ts'
import { type Moment, momentMs } from '../parse/time.ts'
import { withJobs } from '../reach.ts'
import { createPaint, type Paint } from '../render/colours.ts'
import { jobJson, jobTable } from '../render/jobs.ts'
import { jsonLine } from '../render/plain-text.ts'
import { colourChoices, type GlobalFlags, loadSettings } from '../settings.ts'
import { createLadder } from '../signals.ts'

export interface ListArgs extends GlobalFlags {
  readonly queue?: string
  readonly state?: JobState
  readonly since?: Moment
  readonly until?: Moment
  readonly limit?: number
  readonly ascending?: boolean
  readonly watch?: boolean
}

const shownByDefault = 20
const pageSizeMax = 1_000
const watchPauseMs = 2_000

export const run = async (context: CliContext, args: ListArgs): Promise<number> => {
  const settings = await loadSettings(context, args)
  const paint = createPaint(colourChoices(context, args).stdout)
  return withJobs(context, settings, async ({ client }) => {
    if (args.watch === true) return watch(context, args, client, paint)
    const jobs = await listed(context, args, client)
    if (args.json === true) for (const job of jobs) await context.stdout.write(jsonLine(jobJson(job)))
    else if (jobs.length > 0) await context.stdout.write(`${table(context, jobs, paint).join('\n')}\n`)
    else if (args.quiet !== true) await context.stderr.write('millrace: there are no such jobs\n')
    return exitCodes.ok
  })
}

/** As many as were asked for, over as many pages as that takes: a page can be short and still not be the last. */
export const listed = async (context: CliContext, args: ListArgs, client: JobsClient): Promise<readonly JobView[]> => {
  const now = context.clock.now()
  const limit = args.limit ?? shownByDefault
  const filters: Omit<ListRequest, 'limit' | 'cursor'> = {
    ...(args.queue === undefined ? {} : { queue: args.queue }),
    ...(args.state === undefined ? {} : { state: args.state }),
    ...(args.since === undefined ? {} : { from: momentMs(args.since, now) }),
    ...(args.until === undefined ? {} : { to: momentMs(args.until, now) }),
    ...(args.ascending === undefined ? {} : { ascending: args.ascending }),
  }
  const jobs: JobView[] = []
  let cursor: string | undefined
  do {
    const size = Math.min(pageSizeMax, limit - jobs.length)
    const page = await client.list({ ...filters, limit: size, ...(cursor === undefined ? {} : { cursor }) })
    jobs.push(...page.jobs)
    cursor = page.cursor
  } while (cursor !== undefined && jobs.length < limit)
  return jobs
}

const table = ({ clock, stdout }: CliContext, jobs: readonly JobView[], paint: Paint): readonly string[] =>
  jobTable(jobs, clock.now(), paint, stdout.isTerminal ? stdout.columns : undefined)

/** On a terminal the table is drawn anew; elsewhere every change is a line. Ends with Ctrl-C. */
const watch = async (context: CliContext, args: ListArgs, client: JobsClient, paint: Paint): Promise<number> => {
  const { stdout, clock } = context
  const ladder = createLadder(context.signals, () => {})
  const seen = new Map<string, string>()
  let drawn = 0
  try {
    while (ladder.received === undefined) {
      const jobs = await listed(context, args, client)
      if (args.json !== true && stdout.isTerminal) {
        const lines = table(context, jobs, paint)
        // Back to where the last table began, and away with it.
        await stdout.write(`${drawn > 0 ? `\x1b[${drawn}A\x1b[J` : ''}${lines.join('\n')}\n`)
        drawn = lines.length
      } else {
        const changed = jobs.filter((job) => seen.get(job.id) !== versionOf(job))
        const lines = table(context, changed, paint).slice(seen.size === 0 ? 0 : 1)
        for (const job of changed) seen.set(job.id, versionOf(job))
        if (args.json === true) for (const job of changed) await stdout.write(jsonLine(jobJson(job)))
        else if (changed.length > 0) await stdout.write(`${lines.join('\n')}\n`)
      }
      await sleep(clock, watchPauseMs, ladder.signal)
    }
    return exitCodeOfSignal(ladder.received)
  } finally {
    ladder.release()
  }
}

const versionOf = (job: JobView): string => `${job.state} ${job.attempt} ${job.run}`
