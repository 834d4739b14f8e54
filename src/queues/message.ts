import { assert } from '../kernel/assert.ts'
import { type Message, type Priority, priorities } from './port.ts'

/** The one version of the body that there is. A reader refuses every other, so that an old one never guesses at a newer. */
const version = 1

/** Characters that JSON leaves as they are. */
const needsNoQuoting = /^[^"\\]*$/

/** Names and ids in a body: visible ASCII without spaces, so that text order and byte order are the same everywhere. */
const word = /^[\x21-\x7e]{1,128}$/

/** The body of a message, the same on every transport. */
export const encodeMessage = (message: Message): string => {
  assertMessage(message)
  return bodyOf(message)
}

/** Stops on what no reader would take for a message. */
export const assertMessage = (message: Message): void => {
  // The text is made only when it is needed: this runs for every message.
  if (!isMessage(message)) assert(false, `not a message: ${JSON.stringify(message)}`)
}

/** As `encodeMessage`, of one that is known to be a message. */
export const bodyOf = ({ jobId, queue, priority, attempt }: Message): string =>
  needsNoQuoting.test(jobId) && needsNoQuoting.test(queue)
    ? `{"job_id":"${jobId}","queue":"${queue}","priority":"${priority}","attempt":${attempt},"v":${version}}`
    : JSON.stringify({ job_id: jobId, queue, priority, attempt, v: version })

/** What a body says, or undefined if it is not one of ours. Never throws: anybody may have written it. */
export const decodeMessage = (body: string): Message | undefined => {
  const value = parse(body)
  if (typeof value !== 'object' || value === null) return undefined
  const { job_id: jobId, queue, priority, attempt, v } = value as Record<string, unknown>
  const message = { jobId, queue, priority, attempt }
  return v === version && isMessage(message) ? message : undefined
}

export const isMessage = (value: Readonly<Record<keyof Message, unknown>>): value is Message =>
  isWord(value.jobId) && isWord(value.queue) && isPriority(value.priority) && isAttempt(value.attempt)

const isWord = (value: unknown): boolean => typeof value === 'string' && word.test(value)
const isPriority = (value: unknown): boolean => priorities.includes(value as Priority)
const isAttempt = (value: unknown): boolean => Number.isSafeInteger(value) && (value as number) >= 0

const parse = (body: string): unknown => {
  try {
    return JSON.parse(body)
  } catch {
    return undefined
  }
}
