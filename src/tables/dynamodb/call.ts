// Calls. Every call to the service passes here; the library below neither retries nor keeps time.
// I1  A call ends by its own deadline, and its retries by that of the whole effort.
// I2  What may have been written and would do harm if it were written again is not sent again.
// I3  Once one try may have been written, the effort's fault says so, whatever the later tries said.

import { Impossible } from '../../kernel/assert.ts'
import { type Clock, sleep } from '../../kernel/clock.ts'
import type { Random } from '../../kernel/random.ts'
import { delayAfter, type RetryPolicy } from '../../kernel/retry.ts'
import { type TableFault, TableThrottled, TableUnavailable } from '../faults.ts'
import { createGate } from './gate.ts'
import { translate } from './translate.ts'

/** Told after each call: what it was, how it ended, what it cost, and whether it will be made again. */
export interface DynamodbCall {
  readonly name: 'dynamodb.call'
  /** The service's name of the operation. */
  readonly operation: string
  /** `partial`: the service left some of it over. Otherwise `done` or the code of a fault. */
  readonly outcome: string
  readonly tookMs: number
  /** Capacity units; 0 if the answer did not say. */
  readonly units: number
  readonly retryInMs?: number
}

export interface Effort {
  readonly operation: string
  /** What sending it twice does: a read changes nothing, a `safe` write ends the same, an `unsafe` one may not. */
  readonly twice: 'read' | 'safe' | 'unsafe'
  /** When it must be over, on the monotonic clock. */
  readonly until: number
}

export interface Answer<Output> {
  readonly output: Output
  readonly units: number
  /** The service took only some of the work, or nothing; the next try sends the rest. */
  readonly left?: 'some' | 'all'
}

export type Send<Output> = (signal: AbortSignal) => Promise<Answer<Output>>
/** Tries until it is done, and throws a TableFault when it gives up. */
export type Call = <Output>(effort: Effort, send: Send<Output>) => Promise<Output>

export interface CallOptions {
  readonly callMs: number
  readonly sockets: number
  readonly retry: RetryPolicy
}

export interface CallDeps {
  readonly clock: Clock
  readonly random: Random
  readonly emit?: (event: DynamodbCall) => void
}

export const createCall = (deps: CallDeps, options: CallOptions): Call => {
  const { clock, random } = deps
  const { retry } = options
  const tryOnce = createTry(clock, options)

  return async (effort, send) => {
    let failures = 0
    let mayBeWritten = false
    for (;;) {
      const { answer, fault, tookMs } = await tryOnce(effort, send)
      const report = {
        name: 'dynamodb.call',
        operation: effort.operation,
        tookMs,
        units: answer?.units ?? 0,
      } as const
      if (!fault) {
        deps.emit?.({ ...report, outcome: 'done' })
        return answer.output
      }
      failures = answer?.left === 'some' ? 1 : failures + 1
      mayBeWritten ||= fault.outcome === 'unknown' && effort.twice !== 'read'
      const isHopeless = fault.retry === 'never' || (mayBeWritten && effort.twice === 'unsafe')
      const waitMs = isHopeless ? undefined : delayAfter(retry, failures, random.next())
      const isLast = waitMs === undefined || clock.monotonic() + waitMs >= effort.until
      deps.emit?.({ ...report, outcome: answer ? 'partial' : fault.code, ...(isLast ? {} : { retryInMs: waitMs }) })
      if (isLast) throw honest(fault, mayBeWritten, effort)
      await sleep(clock, waitMs)
    }
  }
}

/** I3, and its mirror: a read has certainly written nothing. */
const honest = (fault: TableFault, mayBeWritten: boolean, { twice }: Effort): TableFault => {
  const outcome = mayBeWritten ? 'unknown' : 'none'
  if (fault.outcome === outcome) return fault
  const message = twice === 'read' ? 'the storage gave no answer' : 'an earlier try may have been written'
  return new TableUnavailable(message, outcome, { cause: fault, ...retryAfter(fault) })
}

const retryAfter = ({ retryAfterMs }: TableFault) => (retryAfterMs === undefined ? {} : { retryAfterMs })

type Tried<Output> = { readonly tookMs: number } & (
  | { readonly answer: Answer<Output>; readonly fault?: undefined }
  | { readonly answer?: Answer<Output>; readonly fault: TableFault }
)

/** One call, within its deadline (I1). */
const createTry = (clock: Clock, { callMs, sockets, retry }: CallOptions) => {
  const gate = createGate(clock, sockets)
  const retryAfterMs = retry.capMs

  return async <Output>({ until }: Effort, send: Send<Output>): Promise<Tried<Output>> => {
    const isIn = await gate.enter(until - clock.monotonic())
    if (!isIn) {
      const fault = new TableUnavailable('no call was free in time', 'none', { retryAfterMs })
      return { tookMs: 0, fault }
    }
    const startedAt = clock.monotonic()
    const tookMs = () => clock.monotonic() - startedAt
    const controller = new AbortController()
    const timer = clock.setTimeout(() => controller.abort(), Math.max(0, Math.min(callMs, until - startedAt)))
    try {
      const answer = await Promise.race([send(controller.signal), aborted(controller.signal)])
      if (!answer.left) return { tookMs: tookMs(), answer }
      const fault = new TableThrottled('the storage left work over', { retryAfterMs })
      return { tookMs: tookMs(), answer, fault }
    } catch (error) {
      if (error instanceof Impossible) throw error
      return { tookMs: tookMs(), fault: translate(error, retryAfterMs) }
    } finally {
      clock.clearTimeout(timer)
      gate.leave()
    }
  }
}

/** Rejects when the time is up, also where the library does not look at its signal. */
const aborted = (signal: AbortSignal): Promise<never> =>
  new Promise((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason), { once: true })
  })
