// Ids by their beginning. Ids that we make begin with the time they were made, so a prefix is a range of times; ids that callers
// make need not, and then the listing is read through in bounded steps.

import { InputInvalid } from '../jobs/faults.ts'

const shape = '........-....-....-....-............'
/** Below this a range of times would span years. */
const digitsMin = 5
const timeDigits = 12
/** Our ids did not exist before 2020, and no clock is a day ahead for long. */
const earliestMs = 1_577_836_800_000
const aheadMs = 24 * 60 * 60_000
/** An id may run ahead of the clock: many in one millisecond, or a clock that was set back. */
const slackMs = 10 * 60_000

export interface TimeRange {
  readonly from: number
  readonly to: number
}

/** Refuses what can be the beginning of no id. */
export const checkPrefix = (prefix: string): void => {
  const fits = [...prefix].every((at, index) => (shape[index] === '-' ? at === '-' : /[0-9a-f]/.test(at)))
  if (prefix.length > shape.length || !fits) throw new InputInvalid('idPrefix', 'must be the beginning of a UUID')
}

export const isWholeId = (prefix: string): boolean => prefix.length === shape.length

/** When jobs whose ids begin so were created; undefined if the ids do not seem to begin with a time. */
export const timesOf = (prefix: string, now: number): TimeRange | undefined => {
  const digits = prefix.replaceAll('-', '')
  const version = digits[timeDigits]
  if (digits.length < digitsMin || (version !== undefined && version !== '7')) return undefined
  const time = digits.slice(0, timeDigits)
  const first = Number.parseInt(time.padEnd(timeDigits, '0'), 16)
  const last = Number.parseInt(time.padEnd(timeDigits, 'f'), 16)
  if (last < earliestMs || first > now + aheadMs) return undefined
  return { from: Math.max(0, first - slackMs), to: last }
}
