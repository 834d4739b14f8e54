import type { Claim } from '../jobs/job.ts'
import { type Clock, sleep } from '../kernel/clock.ts'
import { isFault } from '../kernel/fault.ts'
import type { Random } from '../kernel/random.ts'
import { ceilingAfter } from '../kernel/retry.ts'
import { createSharedAbort } from '../kernel/shared-abort.ts'
import type { Emit } from '../telemetry/events.ts'
import type { Credits } from './credits.ts'
import { textOf } from './outcome.ts'
import type { WorkerService } from './service.ts'

// Pollers: one per queue, sharing the free slots.
//
// Q1  A worker of one queue asks for as many jobs as it has slots, and waits for the first.
// Q2  With several queues they ask in turn, for all the slots there are, without waiting: whoever has work gets them, and nobody
//     twice before the others. A queue that has none waits beside the turns, for a single job.
// Q3  Those waiting questions are taken back when the slots are full. What was claimed all the same is given back (see `taken`).
// Q4  A failed question is followed by a pause, ever longer: never a busy loop.

export interface PollerDeps {
  readonly clock: Clock
  readonly random: Random
  readonly emit: Emit
  readonly service: Pick<WorkerService, 'claim'>
  readonly credits: Credits
  readonly workerId: string
  /** No slot is free, and somebody waits for one. */
  filled(): void
  /** Claims, with the time of the question. There may be more than there are slots. */
  taken(claims: readonly Claim[], askedAt: number): void
}

export interface Pollers {
  /** Questions for jobs are taken back, and no more are asked. Resolves when none is under way. */
  stop(): Promise<void>
  /** Takes back the questions of queues that had nothing. */
  recall(): void
}

const backOff = { attemptsMax: Number.POSITIVE_INFINITY, baseMs: 100, capMs: 30_000 }
/** The most that the store takes in one question. */
const claimsMax = 1_000
/** Answers in a row that came too soon and had nothing in them, before there is a pause. */
const hastyMax = 3

export const startPollers = (
  deps: PollerDeps,
  options: { readonly queues: readonly string[]; readonly pollMs: number },
): Pollers => {
  const { clock, random, credits } = deps
  const stopping = createSharedAbort()
  const open = new Set<{ readonly controller: AbortController; readonly waitMs: number }>()
  const isAlone = options.queues.length === 1
  let turn: Promise<unknown> = Promise.resolve()

  const poll = async (queue: string): Promise<void> => {
    let failures = 0
    let hasty = 0
    while (!stopping.signal.aborted) {
      let answer = await inTurn(() => askWhenFree(queue, isAlone ? options.pollMs : 0))
      if (answer === 'none' && !isAlone) answer = await ask(queue, 1, options.pollMs)
      failures = answer === 'failed' ? failures + 1 : 0
      hasty = answer === 'tooSoon' ? hasty + 1 : 0
      if (failures > 0) await pause(failures)
      else if (hasty > hastyMax) await pause(1)
    }
  }

  /** Q2: first come, first served, and then to the end of the line. */
  const inTurn = <T>(act: () => Promise<T>): Promise<T> => {
    const mine = turn.then(act)
    turn = mine.catch(() => {})
    return mine
  }

  const askWhenFree = async (queue: string, waitMs: number): Promise<Answer> => {
    while (credits.free() === 0 && !stopping.signal.aborted) {
      deps.filled()
      await credits.whenFree()
    }
    return ask(queue, Math.min(credits.free(), claimsMax), waitMs)
  }

  const ask = async (queue: string, max: number, waitMs: number): Promise<Answer> => {
    if (stopping.signal.aborted) return 'none'
    const question = { controller: new AbortController(), waitMs }
    const { signal } = question.controller
    const askedAt = clock.monotonic()
    open.add(question)
    try {
      const claims = await deps.service.claim({ queue, workerId: deps.workerId, max, waitMs, signal })
      if (claims.length > 0) deps.taken(claims, askedAt)
      if (claims.length > 0) return 'found'
      return clock.monotonic() - askedAt < waitMs / 2 && !signal.aborted ? 'tooSoon' : 'none'
    } catch (error) {
      if (signal.aborted) return 'none'
      const code = isFault(error) ? { code: error.code } : {}
      deps.emit({ name: 'warning', text: `queue '${queue}' gives no jobs: ${textOf(error)}`, ...code })
      return 'failed'
    } finally {
      open.delete(question)
    }
  }

  const pause = (failures: number): Promise<void> =>
    sleep(clock, ceilingAfter(backOff, failures) * (0.5 + random.next() / 2), stopping.signal)

  const all = Promise.all(options.queues.map(poll))
  return {
    stop: async () => {
      stopping.abort()
      for (const { controller } of open) controller.abort()
      credits.close()
      await all
    },
    recall: () => {
      if (isAlone) return
      for (const { controller, waitMs } of open) if (waitMs > 0) controller.abort()
    },
  }
}

/** `tooSoon`: nothing, and without the wait that was asked for. */
type Answer = 'found' | 'none' | 'tooSoon' | 'failed'
