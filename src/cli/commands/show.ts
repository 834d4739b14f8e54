import type { CliContext } from '../context.ts'
import { exitCodes } from '../exit-codes.ts'
import { wholeId, withJobs } from '../reach.ts'
import { createPaint } from '../render/colours.ts'
import { jobJson, jobPage } from '../render/jobs.ts'
import { jsonLine } from '../render/plain-text.ts'
import { colourChoices, type GlobalFlags, loadSettings } from '../settings.ts'

export interface ShowArgs extends GlobalFlags {
  readonly job: string
}

/** Everything about one job but its output and its secrets. */
export const run = async (context: CliContext, args: ShowArgs): Promise<number> => {
  const settings = await loadSettings(context, args)
  return withJobs(context, settings, async ({ client }) => {
    const job = await client.get(await wholeId(client, args.job))
    const paint = createPaint(colourChoices(context, args).stdout)
    const page =
      args.json === true ? jsonLine(jobJson(job)) : `${jobPage(job, context.clock.now(), paint).join('\n')}\n`
    await context.stdout.write(page)
    return exitCodes.ok
  })
}
