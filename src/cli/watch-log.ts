import type { JobEnding } from './exit-codes.ts'
import type { FollowRequest, JobsClient } from './jobs-client.ts'
import { type FilterWord, type LogEvent, lastSequenceOf, passes } from './log-event.ts'
import type { View } from './render/views.ts'

/** How far somebody has read, so that another connection can go on from there. */
export interface Reading {
  /** The last stored event that was seen. */
  at: { readonly attempt: number; readonly sequence: number } | undefined
  /** The last attempt that was seen to end. */
  endedAttempt: number
  startedAt: number | undefined
  lastEnd: Pick<JobEnding, 'exitCode' | 'signal' | 'ranMs'> | undefined
  ending: Ending | undefined
}

export interface Ending extends JobEnding {
  readonly result: unknown
  readonly error: string | undefined
}

export const newReading = (): Reading => ({
  at: undefined,
  endedAttempt: 0,
  startedAt: undefined,
  lastEnd: undefined,
  ending: undefined,
})

export interface WatchRequest extends FollowRequest {
  readonly filter?: readonly FilterWord[]
  readonly timeoutMs?: number | undefined
}

/**
 * Shows a job's log until the stream ends, noting in `reading` where it got to. Call it again with the same reading after a
 * connection was lost: nothing is shown twice and nothing is left out.
 */
export const watchLog = async (
  client: Pick<JobsClient, 'follow'>,
  view: View,
  { filter = [], timeoutMs, ...request }: WatchRequest,
  reading: Reading,
): Promise<void> => {
  const { at } = reading
  const resumed = at === undefined ? {} : { attempt: at.attempt, fromSequence: at.sequence + 1 }
  for await (const event of client.follow({ ...request, ...resumed })) {
    if (wasSeen(reading, event)) continue
    note(reading, event, timeoutMs)
    if (passes(event, filter)) await view.show(event)
    if (event.kind === 'jobEnded' || request.signal?.aborted) break
  }
}

/** A connection that goes on where another one ended says again how that attempt ended. */
const wasSeen = ({ at, endedAttempt }: Reading, event: LogEvent): boolean => {
  if (event.kind === 'attemptEnded') return event.attempt <= endedAttempt
  return at !== undefined && event.sequence > 0 && event.attempt === at.attempt && lastSequenceOf(event) <= at.sequence
}

const note = (reading: Reading, event: LogEvent, timeoutMs: number | undefined): void => {
  if (event.sequence > 0) reading.at = { attempt: event.attempt, sequence: lastSequenceOf(event) }
  if (event.kind === 'processStart') {
    reading.startedAt = event.timestamp
    reading.lastEnd = undefined
  }
  if (event.kind === 'processEnd') {
    const ranMs = reading.startedAt === undefined ? undefined : event.timestamp - reading.startedAt
    reading.lastEnd = { exitCode: event.exitCode, signal: event.signal, ranMs }
  }
  if (event.kind === 'attemptEnded') reading.endedAttempt = event.attempt
  if (event.kind === 'jobEnded')
    reading.ending = { ...reading.lastEnd, state: event.state, result: event.result, error: event.error, timeoutMs }
}
