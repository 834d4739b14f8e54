// What went wrong for good: jobs that have failed, and messages that nobody could read.

import { isFault } from '../../kernel/fault.ts'
import type { CliContext } from '../context.ts'
import { exitCodes } from '../exit-codes.ts'
import { UsageInvalid } from '../faults.ts'
import type { DeadLetterView, JobsClient } from '../jobs-client.ts'
import type { Moment } from '../parse/time.ts'
import { wholeId, withJobs } from '../reach.ts'
import { createPaint } from '../render/colours.ts'
import { jobJson, jobTable } from '../render/jobs.ts'
import { jsonLine, plainText } from '../render/plain-text.ts'
import { colourChoices, type GlobalFlags, loadSettings } from '../settings.ts'
import { listed } from './list.ts'

export interface DeadArgs extends GlobalFlags {
  readonly action: 'list' | 'redrive'
  readonly jobs?: readonly string[]
  readonly all?: boolean
  readonly queue?: string
  readonly since?: Moment
  readonly limit?: number
}

const lettersMax = 100
/** How many failed jobs one redrive starts at the most. */
const redrivenMax = 10_000

export const run = async (context: CliContext, args: DeadArgs): Promise<number> => {
  const settings = await loadSettings(context, args)
  return withJobs(context, settings, ({ client }) =>
    args.action === 'list' ? list(context, args, client, settings.options.jobs.queues) : redrive(context, args, client),
  )
}

const list = async (
  context: CliContext,
  args: DeadArgs,
  client: JobsClient,
  queues: readonly string[],
): Promise<number> => {
  const { clock, stdout, stderr } = context
  const jobs = await listed(context, { ...args, state: 'FAILED' }, client)
  const letters: (DeadLetterView & { readonly queue: string })[] = []
  for (const queue of args.queue === undefined ? queues : [args.queue])
    for (const letter of await client.deadLetters(queue, lettersMax)) letters.push({ queue, ...letter })
  if (args.json === true) {
    for (const job of jobs) await stdout.write(jsonLine({ kind: 'job', ...(jobJson(job) as object) }))
    for (const letter of letters) await stdout.write(jsonLine({ kind: 'letter', ...letter }))
    return exitCodes.ok
  }
  const paint = createPaint(colourChoices(context, args).stdout)
  const columns = stdout.isTerminal ? stdout.columns : undefined
  if (jobs.length > 0) await stdout.write(`${jobTable(jobs, clock.now(), paint, columns).join('\n')}\n`)
  for (const { queue, reason, body } of letters)
    await stdout.write(`unreadable message in ${queue}: ${plainText(reason)}: ${plainText(body)}\n`)
  if (jobs.length + letters.length === 0 && args.quiet !== true) await stderr.write('millrace: nothing is dead\n')
  return exitCodes.ok
}

const redrive = async (context: CliContext, args: DeadArgs, client: JobsClient): Promise<number> => {
  const named = args.jobs ?? []
  if (named.length === 0 && args.all !== true)
    throw new UsageInvalid('name the jobs to start again, or say --all', { command: 'dead redrive' })
  if (named.length > 0 && args.all === true)
    throw new UsageInvalid('name the jobs to start again or say --all, not both', { command: 'dead redrive' })
  const jobs =
    named.length > 0
      ? await Promise.all(named.map(async (id) => client.get(await wholeId(client, id))))
      : await listed(context, { ...args, state: 'FAILED', limit: args.limit ?? redrivenMax }, client)
  let refused = 0
  for (const job of jobs) {
    const outcome = await started(client, job.id, job.run)
    if (typeof outcome === 'string') refused += 1
    if (args.json === true)
      await context.stdout.write(
        jsonLine(typeof outcome === 'string' ? { jobId: job.id, refused: outcome } : { jobId: job.id, run: outcome }),
      )
    else if (args.quiet !== true)
      await context.stdout.write(
        typeof outcome === 'string'
          ? `${job.id} was left: ${plainText(outcome)}\n`
          : `${job.id} starts again, run ${outcome}\n`,
      )
  }
  return refused === 0 ? exitCodes.ok : exitCodes.refused
}

/** The new run, or why there is none: somebody else may have been quicker, and the rest goes on. */
const started = async (client: JobsClient, jobId: string, run: number): Promise<number | string> => {
  try {
    return (await client.retry(jobId, run)).run
  } catch (error) {
    if (isFault(error) && (error.code === 'JOB_NOT_READY' || error.code === 'JOB_UNKNOWN')) return error.message
    throw error
  }
}
