import type { Clock } from '../kernel/clock.ts'
import type { Emit } from '../telemetry/events.ts'

/** Warns when something keeps this process from doing anything else for so long that leases are in danger. */
export interface LagWatch {
  /** Something ran without a pause for `forMs`. */
  blocked(forMs: number, leaseMs: number, what: string): void
  /** A timer that was due at `dueAt` fires only now. */
  late(dueAt: number, leaseMs: number): void
}

export const createLagWatch = (deps: { readonly clock: Clock; readonly emit: Emit }): LagWatch => {
  let warnedAt = Number.NEGATIVE_INFINITY

  const warn = (what: string, forMs: number, leaseMs: number): void => {
    warnedAt = deps.clock.monotonic()
    const shown = `${Math.round(forMs)} ms, more than a third of a lease of ${leaseMs} ms`
    deps.emit({ name: 'warning', text: `${what} blocked this process for ${shown}: jobs will be lost` })
  }

  return {
    blocked: (forMs, leaseMs, what) => {
      if (forMs * 3 > leaseMs) warn(what, forMs, leaseMs)
    },
    late: (dueAt, leaseMs) => {
      const forMs = deps.clock.monotonic() - dueAt
      // One block makes every timer late: what was due before the last warning is that same block.
      if (forMs * 3 > leaseMs && dueAt > warnedAt) warn('something', forMs, leaseMs)
    },
  }
}
