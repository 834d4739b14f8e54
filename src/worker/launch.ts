import type { Claim, JobParams } from '../jobs/job.ts'
import { assert } from '../kernel/assert.ts'
import type { Clock } from '../kernel/clock.ts'
import { type Attempt, type AttemptDeps, createAttempt } from './attempt.ts'
import type { Credits } from './credits.ts'
import { childEnvironment } from './environment.ts'
import type { Exec } from './exec.ts'
import type { Handlers } from './handlers.ts'
import { createLazyLog, type LazyLog, type LazyLogDeps } from './lazy-log.ts'
import { textOf } from './outcome.ts'
import { createHandlerWork, type HandlerParams, type HandlerWork } from './run-handler.ts'
import { createProcessWork } from './run-process.ts'
import { mayPass } from './settle-attempt.ts'
import type { Work } from './work.ts'

// From a claim to an attempt that somebody looks after. A program gets an attempt at once. A handler is called first: if it
// answers within its first turns and says nothing, it is settled as it stands, without actor, timer or log.
//
// A1  A slot is taken for every claim, given back when its work has ended, and the claim is dealt with exactly once.
// A2  All handlers that were called in one turn share the one timer that ends their first turns.

export interface LaunchDeps extends AttemptDeps, LazyLogDeps {
  readonly exec: Exec
  readonly handlers: Handlers
  /** Our own environment; programs see what the list allows of it. */
  readonly environment: Readonly<Record<string, string>>
  readonly workerId: string
  readonly credits: Credits
}

export interface LaunchOptions {
  readonly environment: readonly string[]
  readonly outputGraceMs: number
}

/** That the worker is to stop, and how soon. */
export type Urgency = 'drain' | 'halt'

export interface Launcher {
  launch(claim: Claim, askedAt: number): void
  /** Everything that has an attempt, in the order it got one. */
  readonly attempts: ReadonlySet<Attempt>
  /** Handlers in their first turns get an attempt now: whoever stops wants to reach them. */
  engageAll(): void
  /** Tells every attempt, and those that are still to come. */
  urge(urgency: Urgency): void
}

type CommandParams = Extract<JobParams, { readonly kind: 'command' }>

/** A claim on its way: what an attempt of it would need. */
interface Launching {
  readonly claim: Claim
  readonly lazyLog: LazyLog
  readonly askedAt: number
  readonly answeredAt: number
  work: Work | undefined
  attempt: Attempt | undefined
}

export const createLauncher = (deps: LaunchDeps, options: LaunchOptions): Launcher => {
  const { clock, credits, service } = deps
  const attempts = new Set<Attempt>()
  const young = createYoung(clock)
  let urgency: Urgency | undefined

  const launch = (claim: Claim, askedAt: number): void => {
    credits.take()
    const launching = begin(claim, askedAt)
    try {
      if (claim.job.params.kind === 'handler') callHandler(launching, claim.job.params)
      else startProgram(launching, claim.job.params)
    } catch (error) {
      drop(launching, error)
    }
  }

  const begin = (claim: Claim, askedAt: number): Launching => {
    const launching: Launching = {
      claim,
      askedAt,
      answeredAt: clock.monotonic(),
      work: undefined,
      attempt: undefined,
      lazyLog: createLazyLog(deps, claim, {
        opening: () => engage(launching),
        publish: (items) =>
          service.publish(claim.hold, items).then((renewal) => {
            launching.attempt?.heard(renewal)
            return renewal
          }),
        failed: (error) => launching.attempt?.lose(error),
      }),
    }
    return launching
  }

  const startProgram = (launching: Launching, { argv, cwd, env, stdin }: CommandParams): void => {
    const { job } = launching.claim
    launching.work = createProcessWork(deps, launching.lazyLog, job, {
      argv,
      env: childEnvironment(deps.environment, options.environment, job, env),
      ...(cwd === undefined ? {} : { cwd }),
      ...(stdin === undefined ? {} : { stdin }),
    })
    engage(launching)
  }

  const callHandler = (launching: Launching, params: HandlerParams): void => {
    const work = createHandlerWork(deps, launching.lazyLog, launching.claim.job, params)
    launching.work = work
    const answered = (): void => {
      if (launching.attempt === undefined) settleAsItStands(launching, work)
    }
    if (work.call()) answered()
    else if (launching.attempt === undefined) {
      work.onAnswer(answered)
      young.add(() => {
        if (!work.isAnswered()) engage(launching)
      })
    }
  }

  /** The short way: one call to the store, and nothing else. */
  const settleAsItStands = (launching: Launching, work: HandlerWork): void => {
    try {
      const { claim, lazyLog } = launching
      const { outcome, end } = work.ended()
      const closing = lazyLog.finish(end)
      assert(!(closing instanceof Promise), 'a handler has a log and nobody looks after it')
      const settling = service.settle(claim.hold, outcome, closing)
      credits.workEnded()
      settling.then(credits.settled, (error: unknown) => {
        // The long way tries again, with heartbeats meanwhile; what was refused for good is over.
        if (mayPass(error)) engage(launching, 'work has ended')
        else credits.settled()
      })
    } catch (error) {
      drop(launching, error)
    }
  }

  const engage = (launching: Launching, when: 'work runs' | 'work has ended' = 'work runs'): void => {
    const { work } = launching
    if (launching.attempt !== undefined || work === undefined) return
    const parts = { ...launching, work, outputGraceMs: options.outputGraceMs }
    let isOver = false
    const attempt = createAttempt(deps, parts, {
      workEnded: () => {
        if (when === 'work runs') credits.workEnded()
      },
      ended: () => {
        isOver = true
        if (launching.attempt !== undefined) attempts.delete(launching.attempt)
        credits.settled()
      },
    })
    launching.attempt = attempt
    if (isOver) return
    attempts.add(attempt)
    if (urgency !== undefined) attempt[urgency]()
  }

  /** A bug ends one claim and nothing else: the store gives the job to somebody again when its lease has passed. */
  const drop = (launching: Launching, error: unknown): void => {
    const { jobId, attempt } = launching.claim.hold
    deps.emit({ name: 'warning', text: `attempt ${attempt} of job ${jobId} was dropped: ${textOf(error)}` })
    if (launching.attempt !== undefined) return
    launching.lazyLog.abandon()
    credits.workEnded()
    credits.settled()
  }

  return {
    launch,
    attempts,
    engageAll: young.end,
    urge: (how) => {
      urgency = how
      for (const attempt of [...attempts]) attempt[how]()
    },
  }
}

/** Handlers in their first turns. */
const createYoung = (clock: Clock) => {
  let waiting: (() => void)[] = []
  const end = (): void => {
    const all = waiting
    waiting = []
    for (const engage of all) engage()
  }
  return {
    add: (engage: () => void): void => {
      if (waiting.length === 0) clock.setTimeout(end, 0)
      waiting.push(engage)
    },
    end,
  }
}
