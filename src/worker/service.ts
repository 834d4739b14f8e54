import type { ClaimRequest } from '../jobs/claim.ts'
import type { Claim, Closing, Hold, Outcome, Renewal, Settled } from '../jobs/job.ts'
import type { StoredItem } from '../log/event.ts'

/** What a worker needs of the store, in this process or behind the API. CLAIM_LOST means that the attempt is over. */
export interface WorkerService {
  claim(request: ClaimRequest): Promise<readonly Claim[]>
  /** The heartbeat. */
  renew(hold: Hold): Promise<Renewal>
  /** Stores entries of the attempt's log, at most 25 a call, one call at a time. */
  publish(hold: Hold, items: readonly StoredItem[]): Promise<Renewal>
  settle(hold: Hold, outcome: Outcome, closing: Closing): Promise<Settled>
  /** Gives the job back untouched. */
  release(hold: Hold): Promise<Settled>
  /** Tells at once what renew and publish would tell later, where it can: in the same process. */
  listen(hold: Hold, listener: (renewal: Renewal) => void): () => void
}
