import type { CliContext } from '../context.ts'
import { exitCodes } from '../exit-codes.ts'
import { wholeId, withJobs } from '../reach.ts'
import { jsonLine } from '../render/plain-text.ts'
import { type GlobalFlags, loadSettings } from '../settings.ts'

export interface RetryArgs extends GlobalFlags {
  readonly jobs: readonly string[]
}

/** Starts jobs again that have failed or were cancelled: the same jobs, their next run. */
export const run = async (context: CliContext, args: RetryArgs): Promise<number> => {
  const settings = await loadSettings(context, args)
  return withJobs(context, settings, async ({ client, isAlone }) => {
    for (const given of args.jobs) {
      const job = await client.get(await wholeId(client, given))
      // The run that we saw: if somebody was quicker, this is not repeated.
      const { run } = await client.retry(job.id, job.run)
      if (settings.json) await context.stdout.write(jsonLine({ jobId: job.id, run }))
      else if (!settings.quiet) await context.stdout.write(`${job.id} starts again, run ${run}\n`)
    }
    if (isAlone && !settings.quiet) await context.stderr.write('millrace: `millrace up` runs what waits here\n')
    return exitCodes.ok
  })
}
