import type { Clock } from '../kernel/clock.ts'
import { isFault } from '../kernel/fault.ts'
import { TableUnavailable } from '../tables/faults.ts'
import type { Tables, Verdict } from '../tables/port.ts'
import { answer, fail, type Operation } from './operation.ts'

/** Gives a group to the adapter and every operation its verdict. Rejects only if some of them are to be tried again. */
export type Flush = (operations: readonly Operation[], tryAgain: boolean) => Promise<void>

export const createFlush = (clock: Clock, inner: Tables, deadlineMs: number): Flush => {
  /** A group that does not come back in time has an unknown outcome; what it does later is nobody's business any more. */
  const commit = (operations: readonly Operation[]): Promise<readonly Verdict[]> =>
    new Promise((resolve, reject) => {
      const timer = clock.setTimeout(() => {
        const fault = new TableUnavailable(`no answer within ${deadlineMs} ms`, 'unknown')
        resolve(operations.map(() => ({ kind: 'failed', fault })))
      }, deadlineMs)
      inner
        .commit(operations.map(({ write }) => write))
        .then(resolve, reject)
        .finally(() => clock.clearTimeout(timer))
    })

  /**
   * The adapter refuses a whole group for one malformed write, before it has written anything: halves are tried until the one
   * that is to blame stands alone.
   */
  const isolate = async (operations: readonly Operation[]): Promise<readonly (Verdict | { error: unknown })[]> => {
    try {
      return await commit(operations)
    } catch (error) {
      if (operations.length === 1 || isFault(error)) return operations.map(() => ({ error }))
      const middle = operations.length >> 1
      return [...(await isolate(operations.slice(0, middle))), ...(await isolate(operations.slice(middle)))]
    }
  }

  return async (operations, tryAgain) => {
    const open = operations.filter(({ settled }) => !settled)
    if (open.length === 0) return
    const verdicts = await isolate(open)
    let left: unknown
    for (let index = 0; index < open.length; index++) {
      const operation = open[index] as Operation
      const verdict = verdicts[index] as Verdict | { error: unknown }
      if ('error' in verdict) fail(operation, verdict.error)
      else if (tryAgain && verdict.kind === 'failed' && verdict.fault.retry === 'later') left = verdict.fault
      else answer(operation, verdict)
    }
    if (left !== undefined) throw left
  }
}
