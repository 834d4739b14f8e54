import type { SnapshotFrom } from 'xstate'
import { worker } from '../../machines/worker.ts'
import type { WorkerOptions } from '../config/sections/worker.ts'
import type { Claim } from '../jobs/job.ts'
import { assert } from '../kernel/assert.ts'
import { createRoot } from '../kernel/start.ts'
import { createCredits } from './credits.ts'
import { createLagWatch } from './lag.ts'
import { createLauncher, type LaunchDeps } from './launch.ts'
import { type Pollers, startPollers } from './pollers.ts'

export interface WorkerDeps extends Omit<LaunchDeps, 'workerId' | 'credits' | 'lag'> {
  /** Begins the worker's id, so that the death of its process can be told from it. */
  readonly workerPrefix: string
}

/** What a worker has in its hands. */
export interface Running {
  readonly jobId: string
  readonly queue: string
  readonly attempt: number
}

/** Takes jobs from queues and runs them, as many at a time as it has slots. */
export interface Worker {
  readonly id: string
  readonly slots: number
  /** Begins to take jobs. */
  start(): void
  /**
   * Takes nothing more, gives what runs time to end, then tells it to stop and gives it back. Resolves when nothing is left.
   * Called a second time it stops now.
   */
  stop(): Promise<void>
  /** Kills what runs and gives it back. */
  stopNow(): Promise<void>
  /** Jobs that are not dealt with: running ones, and those whose end is being stored. */
  busy(): number
  /** Programs and handlers that take their time. */
  running(): readonly Running[]
  /** Called whenever the last job was dealt with. Gives back how to stop listening. */
  onIdle(listener: () => void): () => void
}

export const createWorker = (deps: WorkerDeps, options: WorkerOptions): Worker => {
  assert(options.queues.length > 0, 'a worker without queues')
  const id = `${deps.workerPrefix}${Buffer.from(deps.random.bytes(6)).toString('hex')}`
  const idlers = new Set<() => void>()
  const actor = createRoot(worker, { clock: deps.clock, input: { drainGraceMs: options.drainGraceMs } })
  const stopped = new Promise<void>((resolve) => actor.subscribe({ complete: resolve }))
  let pollers: Pollers | undefined
  let now = actor.getSnapshot()
  let isPolling = false
  let givingBack = 0

  const credits = createCredits(options.slots, () => changed())
  const lag = createLagWatch(deps)
  const launcher = createLauncher({ ...deps, workerId: id, credits, lag }, options)

  /** Only what the machine may care about is told: a job that is over in no time must not cost an event. */
  const changed = (): void => {
    if (isTaking() && !now.hasTag('claiming') && credits.free() > 0) actor.send({ type: 'freed' })
    if (credits.unsettled() > 0) return
    for (const listener of idlers) listener()
    sayIfIdle()
  }

  const sayIfIdle = (): void => {
    if (!isTaking() && !isPolling && givingBack === 0 && credits.unsettled() === 0 && now.status === 'active')
      actor.send({ type: 'idle' })
  }

  const isTaking = (): boolean => now.hasTag('taking')

  const taken = (claims: readonly Claim[], askedAt: number): void => {
    for (const claim of claims) {
      if (credits.free() > 0 && isTaking()) launcher.launch(claim, askedAt)
      else void giveBack(claim)
    }
  }

  /** More than there was room for, or too late. Who cannot be given back comes back by itself when its lease has passed. */
  const giveBack = async ({ hold }: Claim): Promise<void> => {
    givingBack += 1
    try {
      await deps.service.release(hold)
    } catch {
      // See above.
    }
    givingBack -= 1
    sayIfIdle()
  }

  const obey = (snapshot: SnapshotFrom<typeof worker>): void => {
    const before = now
    now = snapshot
    const has = (tag: Parameters<typeof now.hasTag>[0]): boolean => now.hasTag(tag) && !before.hasTag(tag)
    if (isTaking() && !now.hasTag('claiming')) pollers?.recall()
    if (!isTaking() && before.hasTag('taking')) stopPolling()
    if (has('signalling')) launcher.urge('drain')
    if (has('halting')) launcher.urge('halt')
  }

  const stopPolling = (): void => {
    launcher.engageAll()
    const ended = pollers?.stop() ?? Promise.resolve()
    void ended.then(() => {
      isPolling = false
      sayIfIdle()
    })
  }

  actor.subscribe(obey)
  actor.start()
  const stop = (type: 'stop' | 'stopNow'): Promise<void> => {
    if (now.status === 'active') actor.send({ type })
    return stopped
  }
  return {
    id,
    slots: options.slots,
    start: () => {
      if (pollers !== undefined || !isTaking()) return
      isPolling = true
      pollers = startPollers(
        {
          ...deps,
          credits,
          workerId: id,
          taken,
          filled: () => {
            if (now.hasTag('claiming')) actor.send({ type: 'filled' })
          },
        },
        options,
      )
    },
    stop: () => stop('stop'),
    stopNow: () => stop('stopNow'),
    busy: () => credits.unsettled(),
    running: () => [...launcher.attempts].map(({ claim }) => ({ ...claim.hold })),
    onIdle: (listener) => {
      idlers.add(listener)
      return () => idlers.delete(listener)
    },
  }
}
