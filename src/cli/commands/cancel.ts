import type { CliContext } from '../context.ts'
import { exitCodes } from '../exit-codes.ts'
import { wholeId, withJobs } from '../reach.ts'
import { jsonLine } from '../render/plain-text.ts'
import { type GlobalFlags, loadSettings } from '../settings.ts'

export interface CancelArgs extends GlobalFlags {
  readonly jobs: readonly string[]
}

/** Ends jobs that wait and asks those that run to stop. What had ended before stays as it is, and we say so. */
export const run = async (context: CliContext, args: CancelArgs): Promise<number> => {
  const settings = await loadSettings(context, args)
  return withJobs(context, settings, async ({ client }) => {
    let isAllDone = true
    for (const given of args.jobs) {
      const jobId = await wholeId(client, given)
      const { state, requested } = await client.cancel(jobId)
      const isDone = requested || state === 'CANCELLED'
      isAllDone &&= isDone
      const what = requested
        ? 'was told to stop'
        : state === 'CANCELLED'
          ? 'is cancelled'
          : `had ended before: ${state}`
      if (settings.json) await context.stdout.write(jsonLine({ jobId, state, requested }))
      else if (!settings.quiet || !isDone) await context.stdout.write(`${jobId} ${what}\n`)
    }
    return isAllDone ? exitCodes.ok : exitCodes.refused
  })
}
