// One follower behind one call. The reader pulls: Connect asks for the next message when the connection has room for it, so a
// slow reader costs one entry and its buffers, and nobody waits for it.
// F1  The follower ends whenever the call does, even if its reader never comes back for more.
// F2  When the server stops, the stream ends with an error after which it can be resumed, never as if it were complete.
// Readers that take nothing at all are not our business but that of calls.ts.

import type { Entry, Follower, FollowRequest } from '../log/follower.ts'
import { ServerDraining } from './faults.ts'
import { link, untilAborted } from './signals.ts'

export interface FollowDeps {
  readonly follower: Follower
  /** Aborted when the server stops. */
  readonly draining: AbortSignal
}

export async function* followFor(
  { follower, draining }: FollowDeps,
  signal: AbortSignal,
  request: FollowRequest,
): AsyncGenerator<Entry, void, void> {
  const linked = link(signal, draining)
  const entries = follower.follow({ ...request, signal: linked.signal })
  // While we stand at a yield nobody but this listener hears that the call is over (F1).
  const leave = () => void entries.return().catch(() => {})
  signal.addEventListener('abort', leave)
  try {
    for (;;) {
      const next = await untilAborted(entries.next(), linked.signal)
      if (next.done) break
      yield next.value
    }
    // A follower that obeys its signal ends quietly, but the stream is not complete (F2).
    if (linked.signal.aborted) throw linked.signal.reason
  } catch (error) {
    throw draining.aborted && !signal.aborted ? new ServerDraining() : error
  } finally {
    signal.removeEventListener('abort', leave)
    linked.unlink()
    leave()
  }
}
