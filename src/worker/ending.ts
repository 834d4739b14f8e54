import type { StopReason } from '../../machines/attempt-times.ts'
import type { Job, Outcome } from '../jobs/job.ts'
import type { EndInfo } from '../log/attempt-log.ts'
import type { Ended } from './work.ts'

/** What is to be said about an attempt that is over: its outcome, or that the job goes back untouched. */
export type Ending =
  | { readonly kind: 'settle'; readonly outcome: Outcome; readonly end: EndInfo }
  | { readonly kind: 'release'; readonly end: EndInfo; readonly hurry: boolean }

/** Pure: how the work ended, and why it was stopped if it was. */
export const endingOf = (job: Pick<Job, 'timeoutMs'>, ended: Ended, reason: StopReason | undefined): Ending => {
  switch (reason) {
    case 'cancelled':
      return { kind: 'settle', outcome: { kind: 'cancelled' }, end: { ...ended.end, error: 'cancelled' } }
    case 'timeLimit': {
      const error = tookTooLong(job)
      return { kind: 'settle', outcome: { kind: 'failed', error }, end: { ...ended.end, error } }
    }
    case 'drained':
    case 'halted':
      return ended.byItself
        ? { kind: 'settle', outcome: ended.outcome, end: ended.end }
        : {
            kind: 'release',
            end: { ...ended.end, error: 'given back: the worker is stopping' },
            hurry: reason === 'halted',
          }
    default:
      return { kind: 'settle', outcome: ended.outcome, end: ended.end }
  }
}

/** What the log says about a stop; nothing if the log is no longer ours to write. */
export const whyStopped = (job: Pick<Job, 'timeoutMs'>, reason: StopReason | undefined): string | undefined => {
  switch (reason) {
    case 'cancelled':
      return 'the job was cancelled'
    case 'timeLimit':
      return `the job ${tookTooLong(job)}`
    case 'drained':
    case 'halted':
      return 'the worker is stopping'
    default:
      return undefined
  }
}

const tookTooLong = ({ timeoutMs }: Pick<Job, 'timeoutMs'>): string => `took longer than ${timeoutMs} ms`
