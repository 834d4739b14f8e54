/** Exponential back-off with full jitter. */
export interface RetryPolicy {
  /** Tries in all, the first included. */
  readonly attemptsMax: number
  /** The ceiling of the first wait. */
  readonly baseMs: number
  /** No ceiling is higher than this. */
  readonly capMs: number
}

/**
 * How long to wait after the `failures`-th failure in a row (from 1), or undefined to give up. Pure: `chance` is a draw from
 * [0, 1). Full jitter, because callers that failed together must not come back together.
 */
export const delayAfter = (policy: RetryPolicy, failures: number, chance: number): number | undefined =>
  failures >= policy.attemptsMax ? undefined : Math.floor(chance * ceilingAfter(policy, failures))

/** The longest wait after the `failures`-th failure: base, 2·base, 4·base … up to the cap. */
export const ceilingAfter = (policy: RetryPolicy, failures: number): number =>
  Math.min(policy.capMs, policy.baseMs * 2 ** Math.min(failures - 1, 52))
