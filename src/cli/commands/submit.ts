import type { CliContext } from '../context.ts'
import { exitCodeOf, exitCodeOfSignal, exitCodes } from '../exit-codes.ts'
import { UsageInvalid } from '../faults.ts'
import { type Reached, withJobs } from '../reach.ts'
import { jsonLine } from '../render/plain-text.ts'
import { createJsonView, createLiveView, type View } from '../render/views.ts'
import { type GlobalFlags, loadSettings } from '../settings.ts'
import { createLadder } from '../signals.ts'
import { type JobFlags, jobScreen, jobTitle, type RawFlags, submitRequest } from '../submission.ts'
import { newReading, watchLog } from '../watch-log.ts'

export interface SubmitArgs extends GlobalFlags, JobFlags, RawFlags {
  readonly wait?: boolean
  readonly follow?: boolean
}

const nothing: View = { show: async () => {}, close: async () => {} }

/** Makes a job. Waits for its end, with or without its output, only if asked to. */
export const run = async (context: CliContext, args: SubmitArgs): Promise<number> => {
  const settings = await loadSettings(context, args)
  const request = await submitRequest(context, args, {})
  const waits = args.wait === true || args.follow === true
  const screen = jobScreen(context, args)
  return withJobs(context, settings, async (reached) => {
    if (waits && reached.isAlone)
      throw new UsageInvalid(
        'nobody runs jobs here, so there is nothing to wait for; start `millrace up`, or use `millrace run`',
      )
    const { jobId, created } = await reached.client.enqueue(request)
    if (settings.json && args.follow !== true) await context.stdout.write(jsonLine({ jobId, created }))
    else if (!waits) await context.stdout.write(`${jobId}\n`)
    if (!waits) {
      if (!created) await screen.say('an earlier request with this id had made the job')
      if (reached.isAlone) await screen.say('stored; `millrace up` runs it')
      return exitCodes.ok
    }
    await screen.say(`job ${jobId}`)
    const shown = settings.json ? createJsonView(context.stdout) : createLiveView(screen, 'troubles')
    return wait(context, reached, args.follow === true ? shown : nothing, jobId, request.timeoutMs, screen.say)
  })
}

const wait = async (
  context: CliContext,
  { client }: Reached,
  view: View,
  jobId: string,
  timeoutMs: number | undefined,
  say: (text: string) => Promise<void>,
): Promise<number> => {
  const reading = newReading()
  // The job is the server's now: Ctrl-C ends the waiting, not the job.
  const ladder = createLadder(context.signals, () => {})
  try {
    const request = { jobId, attempt: 1, grain: 'chunk', timeoutMs, signal: ladder.signal } as const
    const asked = new Promise<void>((resolve) =>
      ladder.signal.addEventListener('abort', () => resolve(), { once: true }),
    )
    await Promise.race([watchLog(client, view, request, reading), asked])
    await view.close()
    if (ladder.received !== undefined) {
      await say(`the job goes on; \`millrace monitor ${jobId}\` shows it`)
      return exitCodeOfSignal(ladder.received)
    }
    if (reading.ending === undefined) return exitCodes.failed
    if (reading.ending.state !== 'COMPLETED') await say(jobTitle(jobId, reading.ending))
    return exitCodeOf(reading.ending)
  } finally {
    ladder.release()
  }
}
