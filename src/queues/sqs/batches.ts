import { type Clock, sleep } from '../../kernel/clock.ts'
import type { Random } from '../../kernel/random.ts'
import { delayAfter, type RetryPolicy } from '../../kernel/retry.ts'
import type { QueueFault } from '../faults.ts'
import type { EntryOutcome } from './service.ts'
import { queueFaultOf } from './translate.ts'

export interface Retrying {
  readonly clock: Clock
  readonly random: Random
  readonly policy: RetryPolicy
  /** Called before each further try. */
  readonly retried: (fault: QueueFault) => void
}

/** The most entries that the service takes in one call. */
const batchMax = 10

/**
 * Does something to many entries in calls of ten, `callsMax` of them at once. An entry that failed and may succeed is tried
 * again, alone with its like; each gets its own outcome, in order. Never throws a fault.
 */
export const inBatches = async <Entry>(
  retrying: Retrying,
  callsMax: number,
  entries: readonly Entry[],
  call: (entries: readonly Entry[]) => Promise<readonly EntryOutcome[]>,
): Promise<readonly EntryOutcome[]> => {
  const batches = Array.from({ length: Math.ceil(entries.length / batchMax) }, (_, index) =>
    entries.slice(index * batchMax, (index + 1) * batchMax),
  )
  const results: (readonly EntryOutcome[])[] = []
  let next = 0
  // Batches beyond the connections there are wait here, not in the pool: there their deadline would already run.
  const lane = async () => {
    for (let index = next++; index < batches.length; index = next++) {
      results[index] = await oneBatch(retrying, batches[index] as readonly Entry[], call)
    }
  }
  await Promise.all(Array.from({ length: Math.min(callsMax, batches.length) }, lane))
  return results.flat()
}

const oneBatch = async <Entry>(
  retrying: Retrying,
  entries: readonly Entry[],
  call: (entries: readonly Entry[]) => Promise<readonly EntryOutcome[]>,
): Promise<readonly EntryOutcome[]> => {
  const final: EntryOutcome[] = []
  let open = entries.map((_, index) => index)
  for (let tries = 1; ; tries++) {
    const outcomes = await answered(call(open.map((index) => entries[index] as Entry)), open.length)
    open.forEach((index, at) => {
      final[index] = outcomes[at]
    })
    open = open.filter((index) => mayPass(final[index]))
    const fault = final[open[0] ?? -1]
    if (!(await pause(retrying, tries, mayPass(fault) ? fault : undefined))) return final
  }
}

/** One call that is tried again while its fault may pass. */
export const withRetries = async <Result>(retrying: Retrying, call: () => Promise<Result>): Promise<Result> => {
  for (let tries = 1; ; tries++) {
    try {
      return await call()
    } catch (error) {
      const fault = queueFaultOf(error)
      if (!(await pause(retrying, tries, mayPass(fault) ? fault : undefined))) throw fault
    }
  }
}

/** Waits before the next try; false if there is to be none. */
const pause = async (retrying: Retrying, tries: number, fault: QueueFault | undefined): Promise<boolean> => {
  const { clock, random, policy } = retrying
  const delayMs = fault && delayAfter(policy, tries, random.next())
  if (!fault || delayMs === undefined) return false
  retrying.retried(fault)
  await sleep(clock, delayMs)
  return true
}

const mayPass = (outcome: EntryOutcome): outcome is QueueFault =>
  typeof outcome === 'object' && outcome.retry === 'later'

const answered = async (call: Promise<readonly EntryOutcome[]>, count: number): Promise<readonly EntryOutcome[]> => {
  try {
    return await call
  } catch (error) {
    const fault = queueFaultOf(error)
    return Array.from({ length: count }, () => fault)
  }
}
