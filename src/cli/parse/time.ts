// Wall time as text and back, by arithmetic on the calendar alone: no clock is read here, and every time is in UTC.

import { UsageInvalid } from '../faults.ts'
import { durationMs } from './quantities.ts'

const dayMs = 86_400_000

/** Days since 1970 of a date in the Gregorian calendar. */
const daysOf = (year: number, month: number, day: number): number => {
  // Years begin in March here, so that the day that comes and goes is the last one.
  const shifted = month > 2 ? year : year - 1
  const era = Math.floor(shifted / 400)
  const yearOfEra = shifted - era * 400
  const dayOfYear = Math.floor((153 * (month > 2 ? month - 3 : month + 9) + 2) / 5) + day - 1
  return era * 146_097 + yearOfEra * 365 + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100) + dayOfYear - 719_468
}

const dateOf = (days: number): readonly [year: number, month: number, day: number] => {
  const shifted = days + 719_468
  const era = Math.floor(shifted / 146_097)
  const dayOfEra = shifted - era * 146_097
  const yearOfEra = Math.floor(
    (dayOfEra - Math.floor(dayOfEra / 1_460) + Math.floor(dayOfEra / 36_524) - Math.floor(dayOfEra / 146_096)) / 365,
  )
  const dayOfYear = dayOfEra - (365 * yearOfEra + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100))
  const shiftedMonth = Math.floor((5 * dayOfYear + 2) / 153)
  const month = shiftedMonth < 10 ? shiftedMonth + 3 : shiftedMonth - 9
  const year = era * 400 + yearOfEra + (month <= 2 ? 1 : 0)
  return [year, month, dayOfYear - Math.floor((153 * shiftedMonth + 2) / 5) + 1]
}

/** `2025-06-15T14:13:20.000Z`. */
export const timeText = (ms: number): string => {
  const days = Math.floor(ms / dayMs)
  const rest = ms - days * dayMs
  const [year, month, day] = dateOf(days)
  const two = (value: number) => String(Math.floor(value)).padStart(2, '0')
  const clock = `${two(rest / 3_600_000)}:${two((rest / 60_000) % 60)}:${two((rest / 1_000) % 60)}`
  return `${String(year).padStart(4, '0')}-${two(month)}-${two(day)}T${clock}.${String(rest % 1_000).padStart(3, '0')}Z`
}

/** A date, with a time of day if you like, with an offset if you like; undefined if it is none. */
export const timeMs = (text: string): number | undefined => {
  const match = /^(\d{4})-(\d\d)-(\d\d)(?:[T ](\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,3}))?)?(Z|[+-]\d\d:?\d\d)?)?$/.exec(
    text,
  )
  if (!match) return undefined
  const [year, month, day, hour, minute, second] = match.slice(1, 7).map((part) => Number(part ?? 0)) as number[]
  if (year === undefined || month === undefined || day === undefined) return undefined
  const days = daysOf(year, month, day)
  const [, sameMonth, sameDay] = dateOf(days)
  const isClock = (hour ?? 0) < 24 && (minute ?? 0) < 60 && (second ?? 0) < 60
  if (month < 1 || month > 12 || sameMonth !== month || sameDay !== day || !isClock) return undefined
  const fraction = Number((match[7] ?? '0').padEnd(3, '0'))
  const clock = (hour ?? 0) * 3_600_000 + (minute ?? 0) * 60_000 + (second ?? 0) * 1_000 + fraction
  return days * dayMs + clock - offsetMs(match[8])
}

const offsetMs = (offset: string | undefined): number => {
  if (offset === undefined || offset === 'Z') return 0
  const minutes = Number(offset.slice(1, 3)) * 60 + Number(offset.slice(-2))
  return (offset.startsWith('-') ? -minutes : minutes) * 60_000
}

/** A point in time, or how long ago it was. What it means depends on now, so the command asks for it when it knows. */
export type Moment = { readonly at: number } | { readonly agoMs: number }

export const parseMoment =
  (flag: string) =>
  (text: string): Moment => {
    const agoMs = durationMs(text)
    if (agoMs !== undefined) return { agoMs }
    const at = timeMs(text)
    if (at !== undefined) return { at }
    throw new UsageInvalid(`${flag} takes a duration such as 5m or a time in UTC such as 2025-06-15T14:13`, {
      field: flag,
    })
  }

export const momentMs = (moment: Moment, now: number): number => ('at' in moment ? moment.at : now - moment.agoMs)
