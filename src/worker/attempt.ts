import type { SnapshotFrom } from 'xstate'
import { type AttemptEvent, attempt } from '../../machines/attempt.ts'
import { type StopReason, wakeAt } from '../../machines/attempt-times.ts'
import type { Claim, Renewal } from '../jobs/job.ts'
import type { Timer } from '../kernel/clock.ts'
import { isFault } from '../kernel/fault.ts'
import { createRoot } from '../kernel/start.ts'
import type { Emit } from '../telemetry/events.ts'
import { endingOf, whyStopped } from './ending.ts'
import type { LagWatch } from './lag.ts'
import type { LazyLog } from './lazy-log.ts'
import { textOf } from './outcome.ts'
import { type SettleDeps, settleAttempt } from './settle-attempt.ts'
import type { Told, Work } from './work.ts'

// One attempt: start, run, finish the log, settle. The machine decides when and how hard to stop, when a heartbeat is due and
// when the attempt is lost; this drives it. Work and store stand on the two sides and never hear of each other.

export interface AttemptDeps extends SettleDeps {
  readonly emit: Emit
  readonly lag: LagWatch
}

export interface AttemptParts {
  readonly claim: Claim
  readonly lazyLog: LazyLog
  readonly work: Work
  /** When the claim was asked for and when it was answered. */
  readonly askedAt: number
  readonly answeredAt: number
  readonly outputGraceMs: number
}

export interface AttemptHooks {
  /** Nothing of it runs any more; its slot is free. */
  workEnded(): void
  /** Nothing more is to be done for it. */
  ended(how: 'settled' | 'lost'): void
}

export interface Attempt {
  readonly claim: Claim
  /** Goes down the ladder and gives the job back. */
  drain(): void
  /** Kills and gives the job back. */
  halt(): void
  /** Something that was heard of the job. */
  heard(renewal: Renewal): void
  /** The job is not ours any more, or the attempt cannot go on. */
  lose(error: unknown): void
}

/** The same for all: without a reason, each abort would make an error with a stack. */
const attemptOver = 'the attempt is over'

export const createAttempt = (deps: AttemptDeps, parts: AttemptParts, hooks: AttemptHooks): Attempt => {
  const { clock, random, service } = deps
  const { claim, lazyLog, work } = parts
  const { hold, job } = claim
  const { leaseMs, heartbeatMs, graceMs } = job.execution
  const actor = createRoot(attempt, {
    clock,
    input: {
      limits: {
        leaseMs,
        heartbeatMs,
        graceMs,
        outputGraceMs: Math.min(graceMs, parts.outputGraceMs),
        timeoutMs: job.timeoutMs,
      },
      at: parts.answeredAt,
      // An answer that took long may belong to a claim that is nearly over: the first heartbeat finds out.
      beatAt: Math.max(parts.askedAt + heartbeatMs, parts.answeredAt),
    },
  })
  const settling = new AbortController()
  let state = 'starting'
  let beat = 0
  let timer: { readonly at: number; readonly timer: Timer } | undefined
  /** Set once the worker is to stop: settling has to hear of it too, whenever it begins. */
  let urged: 'drain' | 'halt' | undefined
  let hasWorkEnded = false
  let isOver = false
  /** Until when somebody watches, as far as was ever heard. */
  let latestWatch = 0

  const send = (event: AttemptEvent): void => {
    if (!isOver) actor.send(event)
  }

  const obey = ({ value, context, status }: SnapshotFrom<typeof attempt>): void => {
    if (context.beat > beat) sendBeat(context.beat)
    if (value !== state) {
      state = value
      enter(context.reason)
    }
    if (status === 'active') arm(wakeAt(context, value))
  }

  const enter = (reason: StopReason | undefined): void => {
    if (state === 'terminating') work.terminate(whyStopped(job, reason))
    else if (state === 'killing') work.kill(whyStopped(job, reason))
    else if (state === 'abandoned') work.abandon()
    else if (state === 'settling') void settle(reason)
    else if (state === 'settled') over('settled')
    else if (state === 'lost') {
      lazyLog.abandon()
      work.close({ forced: true, silent: true })?.catch(() => {})
      over('lost')
    }
  }

  const arm = (at: number): void => {
    if (timer?.at === at) return
    disarm()
    // Nothing is due while the start of lost work is waited for.
    if (!Number.isFinite(at)) return
    timer = { at, timer: clock.setTimeout(() => wake(at), Math.max(0, at - clock.monotonic())) }
  }

  const disarm = (): void => {
    if (timer !== undefined) clock.clearTimeout(timer.timer)
    timer = undefined
  }

  const wake = (at: number): void => {
    timer = undefined
    deps.lag.late(at, leaseMs)
    send({ type: 'tick', at: clock.monotonic() })
  }

  const sendBeat = (number: number): void => {
    beat = number
    const sentAt = clock.monotonic()
    service.renew(hold).then(
      (renewal) => {
        send({ type: 'renewed', sentAt })
        heard(renewal)
      },
      (error: unknown) => {
        if (isFault(error) && error.retry === 'never') send({ type: 'claimLost', at: clock.monotonic() })
        else send({ type: 'unheard', at: clock.monotonic(), chance: random.next() })
      },
    )
  }

  /** Answers overtake each other: one that read the row before somebody came to watch takes nothing back. */
  const heard = ({ cancelRequested, watchedUntil = 0 }: Renewal): void => {
    if (isOver) return
    if (cancelRequested) send({ type: 'cancel', at: clock.monotonic() })
    if (watchedUntil > latestWatch) latestWatch = watchedUntil
    lazyLog.setWatched(latestWatch > clock.now())
  }

  const settle = async (reason: StopReason | undefined): Promise<void> => {
    try {
      if (urged !== undefined) send({ type: urged, at: clock.monotonic() })
      await work.close({ forced: reason !== undefined, silent: false })
      workEnded()
      await settleAttempt(deps, claim, lazyLog, endingOf(job, work.ended(), reason), settling.signal)
      send({ type: 'settled' })
    } catch (error) {
      warn(error)
      send({ type: 'refused' })
    }
  }

  const workEnded = (): void => {
    if (hasWorkEnded) return
    hasWorkEnded = true
    hooks.workEnded()
  }

  const over = (how: 'settled' | 'lost'): void => {
    isOver = true
    settling.abort(attemptOver)
    stopListening()
    disarm()
    workEnded()
    hooks.ended(how)
  }

  /** A lost claim is told by the store's own event; what nobody expected is worth a word. */
  const warn = (error: unknown): void => {
    if (isFault(error) && error.code === 'CLAIM_LOST') return
    const code = isFault(error) ? { code: error.code } : {}
    deps.emit({ name: 'warning', text: `attempt ${hold.attempt} of job ${hold.jobId}: ${textOf(error)}`, ...code })
  }

  /** Whatever broke, nothing of it can be trusted: nothing is settled, and the store tries the job again, within its limits. */
  const lose = (error: unknown): void => {
    if (isOver) return
    warn(error)
    send({ type: 'claimLost', at: clock.monotonic() })
    send({ type: 'refused' })
  }

  const told: Told = {
    started: () => send({ type: 'started', at: clock.monotonic() }),
    exited: (flowing) => send({ type: 'exited', at: clock.monotonic(), flowing }),
    flowing: (flowing) => send(flowing ? { type: 'flowing', at: clock.monotonic() } : { type: 'held' }),
    closed: () => send({ type: 'closed' }),
    broke: lose,
  }

  // A throw inside a subscriber would end the process: it may end no more than the attempt.
  actor.subscribe((snapshot) => {
    try {
      obey(snapshot)
    } catch (error) {
      lose(error)
    }
  })
  const stopListening = service.listen(hold, heard)
  // Whoever waited for the job to begin watches from its first line on.
  if (job.watchedUntil !== undefined) heard({ cancelRequested: false, watchedUntil: job.watchedUntil })
  actor.start()
  work.begin(told)

  const urge = (how: 'drain' | 'halt') => (): void => {
    urged = how
    send({ type: how, at: clock.monotonic() })
  }
  return { claim, drain: urge('drain'), halt: urge('halt'), heard, lose }
}
