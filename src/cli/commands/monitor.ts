// `millrace monitor <job>`: what a job wrote and writes, live or played back.

import type { CliContext } from '../context.ts'
import { exitCodeOfSignal, exitCodes } from '../exit-codes.ts'
import { isFinal } from '../job-words.ts'
import type { JobsClient, JobView } from '../jobs-client.ts'
import type { FilterWord } from '../log-event.ts'
import { type Moment, momentMs } from '../parse/time.ts'
import { wholeId, withJobs } from '../reach.ts'
import type { Pace } from '../render/pace.ts'
import type { Screen } from '../render/screen.ts'
import { createJsonView, createLiveView, createPlaybackView, type View } from '../render/views.ts'
import { type GlobalFlags, loadSettings } from '../settings.ts'
import { createLadder } from '../signals.ts'
import { jobScreen, jobTitle, type RawFlags } from '../submission.ts'
import { newReading, watchLog } from '../watch-log.ts'

export interface MonitorArgs extends GlobalFlags, RawFlags {
  readonly job: string
  readonly from?: number
  readonly attempt?: number
  readonly since?: Moment
  readonly filter?: readonly FilterWord[]
  readonly fast?: boolean
  /** True without a factor. */
  readonly slow?: number | true
  readonly recorded?: boolean
  /** False with `--no-follow`. */
  readonly follow?: boolean
}

export const run = async (context: CliContext, args: MonitorArgs): Promise<number> => {
  const screen = jobScreen(context, args)
  const settings = await loadSettings(context, args)
  return withJobs(context, settings, async ({ client, isAlone }) => {
    const job = await client.get(await wholeId(client, args.job))
    const hasEnded = isFinal(job.state)
    const ladder = createLadder(context.signals, () => {})
    const asked = new Promise<void>((resolve) =>
      ladder.signal.addEventListener('abort', () => resolve(), { once: true }),
    )
    try {
      const pace = hasEnded ? paceOf(context, args, job) : undefined
      const view = await viewOf(context, args, client, job, screen, pace, ladder.signal)
      const reading = newReading()
      // Nobody can run the job as long as we have its directory: waiting for more would be waiting for ever.
      const noFollow = args.follow === false || (isAlone && !hasEnded)
      const attempt = args.attempt ?? (job.attempt > 0 ? job.attempt : undefined)
      const request = {
        jobId: job.id,
        grain: needsLines(args, pace) ? 'line' : 'chunk',
        signal: ladder.signal,
        noFollow,
        ...(attempt === undefined ? {} : { attempt }),
        ...(args.from === undefined ? {} : { fromSequence: args.from }),
        ...(args.since === undefined ? {} : { fromTimestamp: momentMs(args.since, context.clock.now()) }),
        ...(args.filter === undefined ? {} : { filter: args.filter }),
      } as const
      await Promise.race([watchLog(client, view, request, reading), asked])
      await view.close()
      if (ladder.received !== undefined) return exitCodeOfSignal(ladder.received)
      if (args.json !== true) await conclude(screen, job, reading.ending, noFollow && !hasEnded && isAlone)
      return exitCodes.ok
    } finally {
      ladder.release()
    }
  })
}

/** Chunks are quicker, but have no sequences and times within. */
const needsLines = (args: MonitorArgs, pace: Pace | undefined): boolean =>
  args.json === true ||
  args.from !== undefined ||
  args.since !== undefined ||
  (pace !== undefined && pace.kind !== 'fast')

/** A person watches a finished job at its pace; a program gets it at once, unless it asks for less (R0.31). */
const paceOf = ({ stdout }: CliContext, args: MonitorArgs, job: JobView): Pace => {
  if (args.fast === true) return { kind: 'fast' }
  const factor = args.slow === undefined ? 1 : args.slow === true ? 2 : args.slow
  if (args.recorded === true) return { kind: 'recorded', factor }
  const isAsked = args.slow !== undefined || (stdout.isTerminal && args.json !== true && args.raw !== true)
  return isAsked ? { kind: 'interval', ms: job.execution.playbackIntervalMs * factor } : { kind: 'fast' }
}

const viewOf = async (
  context: CliContext,
  args: MonitorArgs,
  client: JobsClient,
  job: JobView,
  screen: Screen,
  pace: Pace | undefined,
  signal: AbortSignal,
): Promise<View> => {
  const { clock, stdout } = context
  const live = args.json === true ? createJsonView(stdout) : createLiveView(screen, 'all')
  if (pace === undefined) return live
  const isPlain = args.json === true || pace.kind === 'fast'
  const total = isPlain ? undefined : await lastSequence(client, job, args.attempt)
  return createPlaybackView({ clock, screen, live, stdout }, { pace, total, signal })
}

/** Asked for from behind its end, the log of an attempt says only where that was. */
const lastSequence = async (
  client: JobsClient,
  job: JobView,
  attempt: number | undefined,
): Promise<number | undefined> => {
  const request = { jobId: job.id, attempt: attempt ?? job.attempt, fromSequence: Number.MAX_SAFE_INTEGER } as const
  for await (const event of client.follow({ ...request, noFollow: true, grain: 'line' })) {
    if (event.kind === 'attemptEnded') return event.lastSequence
    if (event.kind === 'processEnd') return event.sequence
  }
  return undefined
}

const conclude = async (
  screen: Screen,
  job: JobView,
  ending: Parameters<typeof jobTitle>[1] | undefined,
  isIdle: boolean,
): Promise<void> => {
  if (ending !== undefined) await screen.say(jobTitle(job.id, ending))
  else if (isIdle) await screen.say(`job ${job.id} is ${job.state}, and nobody runs jobs here; \`millrace up\` does`)
}
