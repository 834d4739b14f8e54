/**
 * Whether the same call may succeed later. `later`: the cause passes by itself; wait, then call again.
 * `never`: the answer is final for this call as it is.
 */
export type Retry = 'later' | 'never'

export interface FaultDetails {
  /** The offending field of the caller's input, as the caller spells it. */
  readonly field?: string
  /** The limit that was passed. */
  readonly limit?: number
  /** How long to wait at least before calling again. */
  readonly retryAfterMs?: number
  readonly cause?: unknown
}

/**
 * An expected failure: it has a code that callers branch on, and a documented consequence. Everything else that is thrown
 * is a bug. Codes are never reused; docs/faults.md lists them all.
 */
export abstract class Fault extends Error {
  abstract readonly code: string
  abstract readonly retry: Retry
  readonly field: string | undefined
  readonly limit: number | undefined
  readonly retryAfterMs: number | undefined

  constructor(message: string, details: FaultDetails = {}) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause })
    this.name = new.target.name
    this.field = details.field
    this.limit = details.limit
    this.retryAfterMs = details.retryAfterMs
  }
}

/** What docs/faults.md says about one code. */
export interface FaultEntry {
  readonly meaning: string
  /** What the system does next by itself. */
  readonly next: string
  /** What a person can do. */
  readonly advice: string
}

export const isFault = (error: unknown): error is Fault => error instanceof Fault
