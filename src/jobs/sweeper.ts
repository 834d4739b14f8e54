import { sweeper } from '../../machines/sweeper.ts'
import { assert } from '../kernel/assert.ts'
import type { Clock } from '../kernel/clock.ts'
import { isFault } from '../kernel/fault.ts'
import type { Random } from '../kernel/random.ts'
import { createRoot } from '../kernel/start.ts'
import type { Emit } from '../telemetry/events.ts'
import type { Sweep } from './sweep.ts'

export interface Sweeper {
  /** Sweeps as soon as the sweep under way, if any, has ended. */
  sweepNow(): void
  /** Resolves when the sweep under way has ended. Calling it twice is fine. */
  stop(): Promise<void>
}

/** Sweeps for ever, with pauses of the given length give or take a half, so that processes drift apart. */
export const createSweeper = (
  deps: { readonly clock: Clock; readonly random: Random; readonly emit: Emit; readonly sweep: Sweep },
  options: { readonly sweepIntervalMs: number },
): Sweeper => {
  const pause = () => options.sweepIntervalMs * (0.5 + deps.random.next())
  const actor = createRoot(sweeper, { clock: deps.clock, input: { pauseMs: pause() } })
  const stopped = new Promise<void>((resolve) => actor.subscribe({ complete: resolve }))

  const sweepOnce = async () => {
    try {
      await deps.sweep.run()
    } catch (error) {
      // The storage is out of reach: the next sweep finds what this one left.
      assert(isFault(error), `a sweep failed in a way that cannot be: ${String(error)}`)
      deps.emit({ name: 'warning', text: `a sweep was cut short: ${error.message}`, code: error.code })
    }
    actor.send({ type: 'swept', pauseMs: pause() })
  }

  let sweeping = false
  actor.subscribe((snapshot) => {
    const was = sweeping
    sweeping = snapshot.hasTag('sweeping')
    if (sweeping && !was) void sweepOnce()
  })
  actor.start()
  return {
    sweepNow: () => actor.send({ type: 'sweepNow' }),
    stop: () => {
      actor.send({ type: 'stop' })
      return stopped
    },
  }
}
