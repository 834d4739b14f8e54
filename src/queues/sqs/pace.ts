import type { Clock } from '../../kernel/clock.ts'
import type { Random } from '../../kernel/random.ts'
import { ceilingAfter, type RetryPolicy } from '../../kernel/retry.ts'
import type { QueueFault } from '../faults.ts'

/**
 * How fast a queue may be asked while the service fails. It outlives the single receive, so that a receiver in a loop cannot
 * be faster than the back-off.
 */
export interface Pace {
  /** How long to leave the service alone, and why. */
  readonly pauseMs: number
  readonly fault: QueueFault | undefined
  failed(fault: QueueFault): void
  succeeded(): void
}

export const createPace = (deps: { readonly clock: Clock; readonly random: Random }, policy: RetryPolicy): Pace => {
  let failures = 0
  let untilMs = 0
  let last: QueueFault | undefined
  return {
    get pauseMs() {
      return Math.max(0, untilMs - deps.clock.monotonic())
    },
    get fault() {
      return last
    },
    failed: (fault) => {
      failures += 1
      last = fault
      // Half of the ceiling is certain: full jitter would now and then wait for nothing, and this loop has no other brake.
      untilMs = deps.clock.monotonic() + ceilingAfter(policy, failures) * (0.5 + deps.random.next() / 2)
    },
    succeeded: () => {
      failures = 0
      untilMs = 0
      last = undefined
    },
  }
}
