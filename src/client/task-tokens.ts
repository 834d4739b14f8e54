import type { Hold } from '../jobs/job.ts'
import type { Clock } from '../kernel/clock.ts'

/** The newest task token of each attempt that this process holds. */
export interface TaskTokens {
  /** The token to show, if the hold is one of ours, and the number of this use. */
  show(hold: Hold): { readonly token: string; readonly use: number } | undefined
  /** Keeps a token that was given with a claim, or in answer to the use of that number. */
  keep(hold: Hold, token: string, given: { readonly leaseMs: number } | { readonly use: number }): void
  forget(hold: Hold): void
  readonly size: number
}

/** The server accepts a token until the lease has ended, and this long after. */
const graceMs = 10 * 60_000

interface Kept {
  readonly token: string
  /** Answers may overtake each other: a token is replaced only by the answer to a later use. */
  readonly use: number
  readonly leaseMs: number
  readonly expiresAt: number
}

export const createTaskTokens = (clock: Pick<Clock, 'monotonic'>): TaskTokens => {
  const kept = new Map<string, Kept>()
  let uses = 0

  /** Attempts that their worker gave up without a word: their tokens are good for nothing by now. */
  const forgetExpired = () => {
    for (const [key, { expiresAt }] of kept) if (expiresAt <= clock.monotonic()) kept.delete(key)
  }

  return {
    show: (hold) => {
      const found = kept.get(keyOf(hold))
      if (!found) return undefined
      uses += 1
      return { token: found.token, use: uses }
    },
    keep: (hold, token, given) => {
      const found = kept.get(keyOf(hold))
      if ('use' in given) {
        if (!found || found.use > given.use || !token) return
        const expiresAt = clock.monotonic() + found.leaseMs + graceMs
        kept.set(keyOf(hold), { ...found, token, use: given.use, expiresAt })
        return
      }
      forgetExpired()
      const { leaseMs } = given
      kept.set(keyOf(hold), { token, use: 0, leaseMs, expiresAt: clock.monotonic() + leaseMs + graceMs })
    },
    forget: (hold) => void kept.delete(keyOf(hold)),
    get size() {
      return kept.size
    },
  }
}

const keyOf = ({ jobId, attempt }: Hold): string => `${jobId}#${attempt}`
