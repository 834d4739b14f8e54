import type { Job, JobParams, Json } from '../jobs/job.ts'
import type { Clock } from '../kernel/clock.ts'
import type { AttemptLog } from '../log/attempt-log.ts'
import type { Emit } from '../telemetry/events.ts'
import { type Handler, type HandlerContext, type Handlers, unknownHandler } from './handlers.ts'
import type { LagWatch } from './lag.ts'
import type { LazyLog } from './lazy-log.ts'
import { textOf, toOutcome } from './outcome.ts'
import type { Ended, Told, Work } from './work.ts'

// A handler as work. It is called before it has an attempt to belong to: one that answers at once never needs one.
//
// H1  Nothing is made that the handler does not ask for: no log before it logs, no abort signal before it looks at it.
// H2  After it has answered, or was given up, nothing it does has any effect.

export interface HandlerDeps {
  readonly clock: Clock
  readonly emit: Emit
  readonly handlers: Handlers
  readonly workerId: string
  readonly lag: LagWatch
}

export type HandlerParams = Extract<JobParams, { readonly kind: 'handler' }>

export interface HandlerWork extends Work {
  /** Calls the handler. True if it has answered already. */
  call(): boolean
  /** Called once, when it answers after `call` has returned. */
  onAnswer(listener: () => void): void
  isAnswered(): boolean
}

export const createHandlerWork = (
  deps: HandlerDeps,
  lazyLog: LazyLog,
  job: Job,
  params: HandlerParams,
): HandlerWork => {
  const { clock } = deps
  let controller: AbortController | undefined
  let isToldToStop = false
  let ended: Ended | undefined
  let answered: (() => void) | undefined
  let told: Told | undefined

  const openLog = (): AttemptLog =>
    lazyLog.open(() => ({ attempt: job.attempt, workerId: deps.workerId, handler: params.name }))

  const context = new Context(job, params, {
    signal: () => {
      controller ??= new AbortController()
      if (isToldToStop) controller.abort()
      return controller.signal
    },
    log: (text) => (ended === undefined ? openLog().output('stdout', Buffer.from(`${text}\n`)) : undefined),
    progress: (fraction, text) => {
      if (ended === undefined) openLog().progress(text === undefined ? { fraction } : { fraction, text })
    },
  })

  const answer = (how: Ended): void => {
    if (ended !== undefined) return
    ended = how
    told?.closed()
    answered?.()
  }

  const threw = (error: unknown): void => {
    if (ended !== undefined) return
    // The stack is for whoever reads the log; nobody waits for it, and the text alone is the outcome.
    const stack = error instanceof Error && error.stack !== undefined ? error.stack : textOf(error)
    try {
      openLog()
        .error(stack)
        .catch(() => {})
    } catch (broken) {
      told?.broke(broken)
    }
    answer(failure(textOf(error)))
  }

  const invoke = (handler: Handler): void => {
    const from = clock.monotonic()
    try {
      const returned = handler(context, params.input)
      if (isPromise(returned)) returned.then((value) => answer(answerOf(value)), threw)
      else answer(answerOf(returned))
    } catch (error) {
      threw(error)
    }
    deps.lag.blocked(clock.monotonic() - from, job.execution.leaseMs, `handler '${params.name}' of job ${job.id}`)
  }

  return {
    call: () => {
      const handler = deps.handlers.get(params.name)
      if (handler === undefined) answer(refusal(unknownHandler(deps.handlers, params.name)))
      else invoke(handler)
      return ended !== undefined
    },
    onAnswer: (listener) => {
      answered = listener
    },
    isAnswered: () => ended !== undefined,
    begin: (owner) => {
      told = owner
      owner.started()
      if (ended !== undefined) owner.closed()
    },
    terminate: () => {
      isToldToStop = true
      controller?.abort()
    },
    kill: () => {
      isToldToStop = true
      controller?.abort()
      if (ended !== undefined) return
      deps.emit({
        name: 'warning',
        text: `handler '${params.name}' of job ${job.id} was told to stop and did not; it goes on without effect`,
      })
      answer({ ...failure('the handler was told to stop and did not'), byItself: false })
    },
    abandon: () => told?.closed(),
    close: () => undefined,
    ended: () => ended ?? failure('the handler did not answer'),
  }
}

interface Verbs extends Pick<HandlerContext, 'log' | 'progress'> {
  readonly signal: () => AbortSignal
}

/** A class, because a getter in a literal gives every object a shape of its own: that alone cost six times a whole job. */
class Context implements HandlerContext {
  readonly jobId: string
  readonly attempt: number
  readonly input: Json
  readonly log: HandlerContext['log']
  readonly progress: HandlerContext['progress']
  readonly #signal: () => AbortSignal

  constructor(job: Job, params: HandlerParams, verbs: Verbs) {
    this.jobId = job.id
    this.attempt = job.attempt
    this.input = params.input
    this.log = verbs.log
    this.progress = verbs.progress
    this.#signal = verbs.signal
  }

  get signal(): AbortSignal {
    return this.#signal()
  }
}

const isPromise = (value: unknown): value is Promise<unknown> =>
  typeof value === 'object' && value !== null && typeof (value as { readonly then?: unknown }).then === 'function'

const answerOf = (returned: unknown): Ended => {
  const outcome = toOutcome(returned)
  const error = outcome.kind === 'failed' || outcome.kind === 'giveUp' ? outcome.error : undefined
  return { outcome, end: error === undefined ? {} : { error }, byItself: true }
}

const failure = (error: string): Ended => ({ outcome: { kind: 'failed', error }, end: { error }, byItself: false })

const refusal = (error: string): Ended => ({ outcome: { kind: 'giveUp', error }, end: { error }, byItself: true })
