// One follower behind one call. The reader pulls: Connect asks for the next message when the connection has room for it, so a
// slow reader costs one entry and its buffers, and nobody waits for it.
// F1  The follower ends whenever the call does, even if its reader never comes back for more.
// F2  When the server stops, a stream still gives what is stored by then, so that whoever watches a job that ended here sees its
//     end. A stream that is not complete ends with an error after which it can be resumed, never as if it were.
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
  let rest = request
  let isComplete = request.noFollow === true
  const pass = (entry: Entry): Entry => {
    rest = restAfter(rest, entry)
    isComplete ||= 'marker' in entry && entry.marker.kind === 'jobEnded'
    return entry
  }
  const live = link(signal, draining)
  try {
    yield* entriesOf(follower, { ...rest, signal: live.signal }, signal, live.signal, pass)
  } catch (error) {
    if (!draining.aborted || signal.aborted) throw error
  } finally {
    live.unlink()
  }
  if (signal.aborted) throw signal.reason
  if (!draining.aborted || isComplete) return
  yield* entriesOf(follower, { ...rest, signal, noFollow: true }, signal, signal, pass)
  if (!isComplete) throw new ServerDraining()
}

async function* entriesOf(
  follower: Follower,
  request: FollowRequest,
  signal: AbortSignal,
  until: AbortSignal,
  pass: (entry: Entry) => Entry,
): AsyncGenerator<Entry, void, void> {
  const entries = follower.follow(request)
  // While we stand at a yield nobody but this listener hears that the call is over (F1).
  const leave = () => void entries.return().catch(() => {})
  signal.addEventListener('abort', leave)
  try {
    for (;;) {
      const next = await untilAborted(entries.next(), until)
      if (next.done) return
      yield pass(next.value)
    }
  } finally {
    signal.removeEventListener('abort', leave)
    leave()
  }
}

/** What is still to be read of a stream behind an entry. */
const restAfter = (before: FollowRequest, entry: Entry): FollowRequest => {
  const { fromTimestamp: _, ...rest } = before
  if ('item' in entry) return { ...rest, attempt: entry.attempt, fromSequence: entry.item.endSequence + 1 }
  const { marker, attempt } = entry
  switch (marker.kind) {
    case 'attemptEnded':
      return { ...rest, attempt: attempt + 1, fromSequence: 1 }
    case 'missing':
    case 'damaged':
      return { ...rest, attempt, fromSequence: marker.to + 1 }
    case 'trimmed':
      return { ...rest, attempt, fromSequence: marker.before }
    default:
      return before
  }
}
