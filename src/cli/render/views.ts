// The ways to look at a log: live, played back, as JSON lines.

import { type Clock, sleep } from '../../kernel/clock.ts'
import type { Output } from '../context.ts'
import { type LogEvent, lastSequenceOf } from '../log-event.ts'
import { timeText } from '../parse/time.ts'
import { createPacer, type Pace } from './pace.ts'
import { jsonLine } from './plain-text.ts'
import type { Screen } from './screen.ts'
import { wrapTo } from './width.ts'

export interface View {
  show(event: LogEvent): Promise<void>
  close(): Promise<void>
}

/** Which of our own lines are worth saying: `run` stands in for the command and says only what went wrong. */
export type Telling = 'all' | 'troubles'

export const createLiveView = (screen: Screen, telling: Telling): View => ({
  show: async (event) => {
    if (event.kind === 'output') return screen.output(event)
    if (event.kind === 'progress') return screen.status(progressText(event))
    const text = tell(event, telling)
    if (text !== undefined) await screen.say(text)
  },
  close: () => screen.close(),
})

/** What we say of an event, if anything. */
const tell = (event: LogEvent, telling: Telling): string | undefined => {
  switch (event.kind) {
    case 'processStart':
      return telling === 'all' || event.attempt > 1 ? `attempt ${event.attempt} started` : undefined
    case 'processError':
      return `error: ${event.message}`
    case 'outputCut':
      return `${event.bytes} bytes of ${event.stream ?? 'output'} are missing here: ${event.reason}`
    case 'attemptEnded':
      return event.complete
        ? undefined
        : `attempt ${event.attempt} was lost with its worker after event ${event.lastSequence}`
    case 'missing':
      return `events ${event.from} to ${event.to} were never stored`
    case 'trimmed':
      return `the log begins at event ${event.before}; what came before has expired`
    case 'damaged':
      return `events ${event.from} to ${event.to} cannot be read: ${event.reason}`
    case 'processEnd':
      return telling === 'all' ? `attempt ${event.attempt} ended${endText(event)}` : undefined
    default:
      return undefined
  }
}

const endText = (event: LogEvent & { readonly kind: 'processEnd' }): string => {
  if (event.signal) return ` by ${event.signal}`
  if (event.exitCode !== undefined) return ` with exit code ${event.exitCode}`
  return event.error ? `: ${event.error}` : ''
}

const progressText = ({ fraction, text }: LogEvent & { readonly kind: 'progress' }): string =>
  [fraction === undefined ? undefined : `${Math.round(fraction * 100)} %`, text].filter(Boolean).join(' ')

/** Plays a finished job back at a pace, with `event N of M` under it. `total` is the last sequence, where it is known. */
export const createPlaybackView = (
  deps: { readonly clock: Clock; readonly screen: Screen; readonly live: View; readonly stdout: Output },
  options: { readonly pace: Pace; readonly total: number | undefined; readonly signal: AbortSignal },
): View => {
  const pauseBefore = createPacer(options.pace)
  return {
    show: async (event) => {
      const pauseMs = pauseBefore(event)
      if (pauseMs > 0) await sleep(deps.clock, pauseMs, options.signal)
      if (options.signal.aborted) return
      await deps.live.show(
        event.kind === 'output' && deps.stdout.isTerminal ? wrapped(event, deps.stdout.columns) : event,
      )
      const sequence = lastSequenceOf(event)
      if (sequence > 0) await deps.screen.status(positionText(sequence, options.total))
    },
    close: () => deps.live.close(),
  }
}

const positionText = (sequence: number, total: number | undefined): string =>
  total === undefined ? `event ${sequence}` : `event ${sequence} of ${total}`

/** Breaks long lines itself, because the status below has to know where the cursor is. */
const wrapped = (event: LogEvent & { readonly kind: 'output' }, columns: number): LogEvent => {
  // Fewer bytes than columns are never too wide, and most lines are like that.
  if (event.bytes.length < columns) return event
  const text = Buffer.from(event.bytes).toString()
  const isText = Buffer.from(text).equals(event.bytes)
  if (!isText) return event
  const lines = text.split('\n').flatMap((line) => wrapTo(line, columns))
  return { ...event, bytes: Buffer.from(lines.join('\n')) }
}

/** One object on one line for each event; what a job wrote is only ever within quotes (M10). */
export const createJsonView = (stdout: Output): View => ({
  show: async (event) => {
    await stdout.write(jsonLine(jsonOf(event)))
  },
  close: async () => {},
})

const jsonOf = (event: LogEvent): unknown => {
  const { kind, timestamp, ...rest } = event
  const head = { type: typeNames[kind], ...(timestamp > 0 ? { time: timeText(timestamp) } : {}) }
  if (event.kind !== 'output') return { ...head, ...rest }
  const { attempt, sequence, stream, bytes } = event
  return { ...head, attempt, sequence, stream, ...textOf(bytes) }
}

/** Bytes that are no text travel in base64: they would not come back otherwise. */
const textOf = (bytes: Uint8Array): { readonly text: string } | { readonly base64: string } => {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)
  const text = buffer.toString()
  return Buffer.from(text).equals(buffer) ? { text } : { base64: buffer.toString('base64') }
}

/** The names of the wire contract. */
const typeNames: Readonly<Record<LogEvent['kind'], string>> = {
  output: 'OUTPUT',
  processStart: 'PROCESS_START',
  processEnd: 'PROCESS_END',
  processError: 'PROCESS_ERROR',
  progress: 'PROGRESS',
  outputCut: 'OUTPUT_CUT',
  attemptEnded: 'ATTEMPT_ENDED',
  jobEnded: 'JOB_ENDED',
  missing: 'MISSING',
  trimmed: 'TRIMMED',
  damaged: 'DAMAGED',
}
