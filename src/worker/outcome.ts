import { checkJson, checkWhole, limits } from '../jobs/check.ts'
import type { Json, Outcome } from '../jobs/job.ts'
import { isFault } from '../kernel/fault.ts'

const answers = new WeakSet<object>()

/** What a handler may answer instead of a plain value. Made by `done`, `later` and `giveUp`. */
export type Answer = Extract<Outcome, { readonly kind: 'done' | 'later' | 'giveUp' }>

const answer = <Kind extends Answer>(value: Kind): Kind => {
  answers.add(value)
  return value
}

/** The job is completed. A plain value, or nothing at all, means the same. */
export const done = (result?: Json): Answer => answer({ kind: 'done', ...(result === undefined ? {} : { result }) })

/** Nothing failed: call again, not before `inMs` have passed. */
export const later = (inMs: number): Answer => answer({ kind: 'later', inMs })

/** Failed, and trying again would not help. */
export const giveUp = (reason: string): Answer => answer({ kind: 'giveUp', error: reason })

/** What a handler returned, as an outcome. What cannot be stored is a failure that says so. */
export const toOutcome = (returned: unknown): Outcome => {
  if (returned === undefined) return { kind: 'done' }
  const isAnswer = typeof returned === 'object' && returned !== null && answers.has(returned)
  const outcome = isAnswer ? (returned as Answer) : ({ kind: 'done', result: returned as Json } as const)
  try {
    if (outcome.kind === 'done' && outcome.result !== undefined) checkJson('the result', outcome.result)
    if (outcome.kind === 'later') checkWhole('inMs', outcome.inMs, 0, limits.delayMs)
    return outcome
  } catch (error) {
    return { kind: 'failed', error: `the handler's answer cannot be stored: ${textOf(error)}` }
  }
}

/** The text of whatever was thrown. */
export const textOf = (thrown: unknown): string => {
  if (isFault(thrown) || thrown instanceof Error) return thrown.message === '' ? thrown.name : thrown.message
  return typeof thrown === 'string' ? thrown : `threw ${describe(thrown)}`
}

const describe = (thrown: unknown): string => {
  try {
    return JSON.stringify(thrown) ?? String(thrown)
  } catch {
    return typeof thrown
  }
}
