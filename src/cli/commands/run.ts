// `millrace run -- command`: stands in for the command. What it prints is printed, how it ends is how we end.

import { isFault } from '../../kernel/fault.ts'
import type { CliContext } from '../context.ts'
import { exitCodeOf, exitCodeOfSignal, exitCodes } from '../exit-codes.ts'
import { isUnreachable } from '../failure.ts'
import type { SubmitRequest } from '../jobs-client.ts'
import { createReach, type Reached } from '../reach.ts'
import type { Screen } from '../render/screen.ts'
import { createJsonView, createLiveView, type View } from '../render/views.ts'
import { type GlobalFlags, loadSettings } from '../settings.ts'
import { createLadder, type Ladder } from '../signals.ts'
import { type JobFlags, jobScreen, jobTitle, submitRequest } from '../submission.ts'
import { newReading, type Reading, watchLog } from '../watch-log.ts'

export interface RunArgs extends GlobalFlags, JobFlags {
  readonly raw?: boolean
  readonly rawTty?: boolean
}

/** How often another holder is looked for in one run; more often than that, something else is wrong. */
const holdersMax = 10

export const run = async (context: CliContext, args: RunArgs): Promise<number> => {
  const screen = jobScreen(context, args)
  const settings = await loadSettings(context, args)
  // The command sees what it would see without us; the store keeps it where only its owner can read.
  const request = await submitRequest(context, args, ownEnvironment(context))
  const view = args.json === true ? createJsonView(context.stdout) : createLiveView(screen, 'troubles')
  const reach = createReach(context, settings, 'run')
  const reading = newReading()
  let jobId: string | undefined
  let reached: Reached | undefined
  let cancelled: Promise<unknown> | undefined
  const cancel = () => {
    if (jobId !== undefined && reached !== undefined) cancelled ??= reached.client.cancel(jobId).catch(() => {})
  }
  const ladder = createLadder(context.signals, () => {
    void screen.say('cancelling; once more to stop at once')
    cancel()
  })
  try {
    const watched = (async () => {
      for (let holders = 1; reading.ending === undefined; holders++) {
        reached = await reach.find()
        try {
          // The same request id is the same job, also when an earlier holder took it and vanished.
          jobId = (await reached.client.enqueue(request)).jobId
          if (ladder.received !== undefined) cancel()
          if (holders === 1) await introduce(context, screen, reached, jobId)
          await watch(reached, view, request, jobId, reading)
        } catch (error) {
          if (isFault(error) && error.code === 'OUTPUT_CLOSED') {
            cancel()
            await cancelled
          }
          if (!isUnreachable(error) || holders === holdersMax || !reach.lost()) throw error
          await screen.say('whoever held the data directory is gone; going on without it')
          cancelled = undefined
        }
      }
    })()
    // If we do not wait for it any longer, nobody is left to hear how it failed.
    watched.catch(() => {})
    const insisted = await Promise.race([watched, ladder.insisted])
    if (insisted !== undefined) {
      await reached?.runtime?.stopNow()
      return exitCodeOfSignal(insisted)
    }
    await view.close()
    await conclude(screen, jobId, reading)
    await serveGuests(screen, reached, ladder)
    return endedBy(ladder) ?? (reading.ending === undefined ? exitCodes.failed : exitCodeOf(reading.ending))
  } finally {
    await reach.close()
    ladder.release()
  }
}

const watch = (reached: Reached, view: View, request: SubmitRequest, jobId: string, reading: Reading): Promise<void> =>
  watchLog(reached.client, view, { jobId, attempt: 1, grain: 'chunk', timeoutMs: request.timeoutMs }, reading)

const ownEnvironment = ({ host }: CliContext): Readonly<Record<string, string>> =>
  Object.fromEntries(Object.entries(host.env).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])))

/** Which job it is, for those who watch; and what an earlier holder left, which is not ours to run. */
const introduce = async (context: CliContext, screen: Screen, { runtime }: Reached, jobId: string): Promise<void> => {
  if (context.stderr.isTerminal) await screen.say(`job ${jobId}`)
  const left = (await runtime?.leftBehind()) ?? 0
  if (left > 0)
    await screen.say(
      left === 1
        ? '1 earlier job waits here; `millrace up` runs it'
        : `${left} earlier jobs wait here; \`millrace up\` runs them`,
    )
}

const conclude = async (screen: Screen, jobId: string | undefined, { ending }: Reading): Promise<void> => {
  if (ending === undefined || ending.state === 'COMPLETED') return
  await screen.say(jobTitle(jobId ?? '', ending))
}

/** Others have given us jobs through our socket: they are done before we go, unless somebody wants us to go at once. */
const serveGuests = async (screen: Screen, reached: Reached | undefined, ladder: Ladder): Promise<void> => {
  const guests = reached?.runtime?.guests()
  if (guests === undefined || guests.count === 0 || ladder.received !== undefined) return
  await screen.say(`${guests.count} ${guests.count === 1 ? 'job' : 'jobs'} of others to finish; Ctrl-C gives them back`)
  const asked = new Promise<void>((resolve) => ladder.signal.addEventListener('abort', () => resolve(), { once: true }))
  await Promise.race([guests.ended, asked])
}

/** Ctrl-C is what ended us, however the command took it. */
const endedBy = ({ received }: Ladder): number | undefined =>
  received === undefined ? undefined : exitCodeOfSignal(received)
