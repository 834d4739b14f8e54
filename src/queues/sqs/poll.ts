import { type Clock, sleep } from '../../kernel/clock.ts'
import type { QueueFault } from '../faults.ts'
import { type Priority, priorities, type ReceiveOptions } from '../port.ts'
import type { Turns } from '../turns.ts'
import { linked } from './deadline.ts'
import type { Pace } from './pace.ts'
import type { SqsMessage, SqsService } from './service.ts'
import { queueFaultOf } from './translate.ts'

/** A message and the queue of the service that it came from. */
export interface Found {
  readonly url: string
  readonly message: SqsMessage
}

export interface PollDeps {
  readonly clock: Clock
  readonly service: Pick<SqsService, 'receive'>
  readonly urlOf: (priority: Priority) => Promise<string>
  readonly pace: Pace
  readonly turns: Turns
  /** Gives back what came in spite of everything. Nobody waits for it. */
  readonly giveBack: (found: readonly Found[]) => void
}

/** The most messages of one call, and the longest it may wait. */
const callMax = 10
const waitSecondsMax = 20
/** The least time between two rounds that found nothing: a server that does not wait must not make us spin. */
const emptyRoundMs = 500

/** Asks in rounds until something is there, the time is over, or nobody wants it any more. */
export const poll = async (deps: PollDeps, holdSeconds: number, options: ReceiveOptions): Promise<readonly Found[]> => {
  const { clock, pace } = deps
  const { max, signal } = options
  const untilMs = clock.monotonic() + options.waitMs
  const order = deps.turns.order()
  deps.turns.pass()
  while (!signal?.aborted) {
    const restMs = Math.max(0, untilMs - clock.monotonic())
    if (pace.fault && pace.pauseMs > restMs) {
      await pause(clock, restMs, signal)
      if (signal?.aborted) break
      throw pace.fault
    }
    await pause(clock, pace.pauseMs, signal)
    const startedMs = clock.monotonic()
    const found = await round(deps, order, { holdSeconds, max, restMs: Math.max(0, untilMs - startedMs), signal })
    if (signal?.aborted) deps.giveBack(found)
    else if (found.length > 0 || (!pace.fault && clock.monotonic() >= untilMs)) return found
    else if (!pace.fault) await pause(clock, startedMs + emptyRoundMs - clock.monotonic(), signal)
  }
  return []
}

const pause = async (clock: Clock, ms: number, signal: AbortSignal | undefined): Promise<void> => {
  if (ms > 0) await sleep(clock, Math.ceil(ms), signal)
}

interface Round {
  readonly holdSeconds: number
  readonly max: number
  readonly restMs: number
  readonly signal: AbortSignal | undefined
}

/** Short polls in order; if all are empty and there is time, one long poll per class. Tells the pace how it went. */
const round = async (deps: PollDeps, order: readonly Priority[], ask: Round): Promise<readonly Found[]> => {
  const found: Found[] = []
  try {
    for (const priority of order) await shortPolls(deps, priority, ask, found)
    if (found.length === 0 && ask.restMs > 0) found.push(...(await longPolls(deps, ask)))
    deps.pace.succeeded()
  } catch (error) {
    const fault = queueFaultOf(error)
    // What was found before the failure is worth more than the failure: the next receive will meet it again.
    if (fault.retry === 'never' && found.length === 0) throw fault
    deps.pace.failed(fault)
  }
  return found
}

/** Takes what is there at once, call by call while each is full. */
const shortPolls = async (deps: PollDeps, priority: Priority, ask: Round, found: Found[]): Promise<void> => {
  const url = await deps.urlOf(priority)
  for (let full = true; full && found.length < ask.max && !ask.signal?.aborted; ) {
    const max = Math.min(callMax, ask.max - found.length)
    const call = { max, waitSeconds: 0, holdSeconds: ask.holdSeconds }
    const messages = await deps.service.receive(url, call, ask.signal)
    found.push(...messages.map((message) => ({ url, message })))
    full = messages.length === max
  }
}

/** All classes side by side: the first that has something ends the others. What is too much is given back at once. */
const longPolls = (deps: PollDeps, ask: Round): Promise<readonly Found[]> =>
  linked([ask.signal], async (race) => {
    const waitSeconds = Math.min(waitSecondsMax, Math.ceil(ask.restMs / 1_000))
    const call = { max: Math.min(callMax, ask.max), waitSeconds, holdSeconds: ask.holdSeconds }
    const faults: QueueFault[] = []
    const answers = await Promise.all(
      priorities.map(async (priority): Promise<readonly Found[]> => {
        try {
          const url = await deps.urlOf(priority)
          const messages = await deps.service.receive(url, call, race.signal)
          if (messages.length > 0) race.abort()
          return messages.map((message) => ({ url, message }))
        } catch (error) {
          faults.push(queueFaultOf(error))
          race.abort()
          return []
        }
      }),
    )
    const found = answers.flat()
    if (found.length > ask.max) deps.giveBack(found.slice(ask.max))
    if (found.length === 0 && faults[0]) throw faults[0]
    return found.slice(0, ask.max)
  })
