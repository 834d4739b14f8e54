// Unary calls: each try has a limit, each call a deadline, and what may be repeated is repeated in between. A call whose answer
// was lost may have been done: only calls that the server recognises, or that change nothing, are repeated.

import type { CallOptions } from '@connectrpc/connect'
import { type Clock, sleep } from '../kernel/clock.ts'
import { type Fault, isFault } from '../kernel/fault.ts'
import type { Random } from '../kernel/random.ts'
import { delayAfter, type RetryPolicy } from '../kernel/retry.ts'
import { ClientClosed, Unreachable } from './faults.ts'
import { faultOf } from './from-connect-error.ts'
import { linkSignals } from './linked-signal.ts'

export interface CallerDeps {
  readonly clock: Clock
  readonly random: Random
  readonly address: string
  /** Aborted when the client is closed. */
  readonly closed: AbortSignal
}

export interface CallerOptions {
  /** The longest that a call takes, its repetitions included. */
  readonly deadlineMs: number
  /** The longest that one try takes. */
  readonly tryMs: number
}

export interface CallSettings {
  /** Whether doing it twice is the same as doing it once. */
  readonly twice: 'safe' | 'never'
  /** The request id that the call carries, for the fault if it fails. */
  readonly requestId?: string
  /** How much longer than usual the server may take to answer, because it was asked to wait. */
  readonly waitMs?: number
  /** For calls that have another deadline than the rest. */
  readonly deadlineMs?: number
  readonly signal?: AbortSignal | undefined
}

export type Send<Answer> = (options: CallOptions) => Promise<Answer>
export type Call = <Answer>(settings: CallSettings, send: Send<Answer>) => Promise<Answer>

const retry: RetryPolicy = { attemptsMax: 1_000, baseMs: 100, capMs: 5_000 }

export const createCaller =
  (deps: CallerDeps, options: CallerOptions): Call =>
  async (settings, send) => {
    const { clock, random, closed } = deps
    const { signal, waitMs = 0 } = settings
    const until = clock.monotonic() + waitMs + (settings.deadlineMs ?? options.deadlineMs)
    for (let failures = 1; ; failures++) {
      if (closed.aborted) throw new ClientClosed()
      const tryMs = Math.max(1, Math.min(waitMs + options.tryMs, until - clock.monotonic()))
      const answer = await tryOnce(deps, settings, tryMs, send)
      if (!isFault(answer)) return answer.value
      if (closed.aborted) throw new ClientClosed({ cause: answer })
      if (answer.retry === 'never' || settings.twice === 'never' || signal?.aborted) throw answer
      const delayMs = pauseAfter(retry, answer, failures, random.next())
      if (delayMs === undefined || clock.monotonic() + delayMs >= until) throw answer
      await pause(clock, delayMs, closed, signal)
    }
  }

/** At least as long as the server asks for, and never the same for two callers: those that failed together come back apart. */
export const pauseAfter = (policy: RetryPolicy, fault: Fault, failures: number, chance: number): number | undefined => {
  const delayMs = delayAfter(policy, failures, chance)
  return delayMs === undefined ? undefined : delayMs + (fault.retryAfterMs ?? 0)
}

/** Sleeps, unless one of the signals comes first. */
export const pause = async (clock: Clock, ms: number, ...signals: readonly (AbortSignal | undefined)[]) => {
  const linked = linkSignals(...signals)
  await sleep(clock, ms, linked.signal)
  linked.release()
}

const tryOnce = async <Answer>(
  { clock, address, closed }: CallerDeps,
  { signal, requestId }: CallSettings,
  tryMs: number,
  send: Send<Answer>,
): Promise<{ readonly value: Answer } | Fault> => {
  const called = { address, requestId }
  const linked = linkSignals(closed, signal)
  let late: Fault | undefined
  const timer = clock.setTimeout(() => {
    late = new Unreachable(address, `nothing within ${Math.ceil(tryMs)} ms`, called)
    linked.abort()
  }, tryMs)
  try {
    // The server is told how long somebody waits for it, so that it does not work for nobody.
    const headers = { 'Connect-Timeout-Ms': String(Math.ceil(tryMs)) }
    return { value: await send({ signal: linked.signal, headers }) }
  } catch (error) {
    return late ?? faultOf(error, called)
  } finally {
    clock.clearTimeout(timer)
    linked.release()
  }
}
