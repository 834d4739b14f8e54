import type { Claim } from '../jobs/job.ts'
import { type Clock, sleep } from '../kernel/clock.ts'
import { type Fault, isFault } from '../kernel/fault.ts'
import type { Random } from '../kernel/random.ts'
import { ceilingAfter } from '../kernel/retry.ts'
import type { Ending } from './ending.ts'
import type { LazyLog } from './lazy-log.ts'
import type { WorkerService } from './service.ts'

export interface SettleDeps {
  readonly clock: Clock
  readonly random: Random
  readonly service: WorkerService
}

/** Settles are tried until the store has answered: whoever gives up sooner makes finished work run again. */
const retry = { attemptsMax: Number.POSITIVE_INFINITY, baseMs: 100, capMs: 10_000 }
const itemsPerCall = 25

/**
 * Stores how an attempt ended, with the end of its log. Tries again while the store cannot take it; resolves when it has, or
 * when `signal` is aborted. Rejects with what the store refused for good.
 */
export const settleAttempt = async (
  deps: SettleDeps,
  { hold }: Claim,
  lazyLog: LazyLog,
  ending: Ending,
  signal: AbortSignal,
): Promise<void> => {
  if (ending.kind === 'settle') {
    const closing = await lazyLog.finish(ending.end)
    await untilTaken(deps, signal, () => deps.service.settle(hold, ending.outcome, closing))
    return
  }
  if (ending.hurry) lazyLog.abandon()
  else await storeRest(deps, { hold }, lazyLog, ending, signal)
  await untilTaken(deps, signal, () => deps.service.release(hold))
}

/** A job that is given back has no settling transaction: its log is stored to the end all the same. */
const storeRest = async (
  deps: SettleDeps,
  { hold }: Pick<Claim, 'hold'>,
  lazyLog: LazyLog,
  { end: info }: Ending,
  signal: AbortSignal,
): Promise<void> => {
  if (lazyLog.log() === undefined) return
  const { output, end } = await lazyLog.finish(info)
  const rest = [...output, end]
  for (let from = 0; from < rest.length && !signal.aborted; from += itemsPerCall) {
    await untilTaken(deps, signal, () => deps.service.publish(hold, rest.slice(from, from + itemsPerCall)))
  }
}

const untilTaken = async (deps: SettleDeps, signal: AbortSignal, call: () => Promise<unknown>): Promise<void> => {
  for (let failures = 1; !signal.aborted; failures++) {
    try {
      await call()
      return
    } catch (error) {
      if (!mayPass(error)) throw error
      await sleep(deps.clock, Math.max(backOffMs(deps.random, failures), error.retryAfterMs ?? 0), signal)
    }
  }
}

/** Whether the same call may be answered later. */
export const mayPass = (error: unknown): error is Fault => isFault(error) && error.retry === 'later'

const backOffMs = (random: Random, failures: number): number =>
  ceilingAfter(retry, failures) * (0.5 + random.next() / 2)
