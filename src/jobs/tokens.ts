import type { Clock } from '../kernel/clock.ts'
import { TokenRefused } from './faults.ts'
import type { Hold } from './job.ts'
import type { Signer } from './signer.ts'

/** What a worker outside this process shows to act on a job. */
export interface Tokens {
  /** Good until the lease has ended and some time after, since a late worker is fenced by its attempt and not by its token. */
  issue(hold: Hold, leaseMs: number): string
  /** Throws TokenRefused for whatever is malformed, forged, expired or for another queue; the text is one for all. */
  verify(token: string, queue?: string): Hold
}

const graceMs = 10 * 60_000
const purpose = 'task'

export const createTokens = (deps: { readonly clock: Pick<Clock, 'now'>; readonly signer: Signer }): Tokens => ({
  issue: ({ jobId, queue, attempt }, leaseMs) =>
    deps.signer.sign(purpose, [jobId, queue, String(attempt), String(deps.clock.now() + leaseMs + graceMs)]),
  verify: (token, expected) => {
    const [jobId, queue, attempt, expiresAt] = deps.signer.open(purpose, token) ?? []
    if (jobId === undefined || queue === undefined || !(Number(expiresAt) > deps.clock.now())) throw new TokenRefused()
    if (expected !== undefined && expected !== queue) throw new TokenRefused()
    return { jobId, queue, attempt: Number(attempt) }
  },
})
