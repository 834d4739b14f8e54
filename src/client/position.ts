// Where a reader of a job's log stands: (attempt, next sequence wanted). It decides what of a stream is handed on, so that a view
// put together from several connections is the view of one that was never cut:
//   I1  within an attempt, sequences only rise, and none is handed on twice.
//   I2  an attempt that was left is never gone back to.
//   I3  a marker that was handed on is not handed on again.

import type { FollowRequest, Marker } from '../log/follower.ts'

/** Something of a log: stored events from `first` to `last`, or a marker. */
export type Piece<Stored> =
  | { readonly attempt: number; readonly first: number; readonly last: number; readonly stored: Stored }
  | { readonly attempt: number; readonly marker: Marker }

/** Which part of the log to ask for. */
export type Whence = Pick<FollowRequest, 'attempt' | 'fromSequence' | 'fromTimestamp'>

export interface Position {
  /** What to ask for in order to go on exactly here. */
  whence(): Whence
  /** The first sequence wanted of this piece if it is to be handed on, otherwise undefined. Moves on past the piece. */
  take(piece: Piece<unknown>): number | undefined
}

export const createPosition = (from: Whence): Position => {
  let attempt = from.attempt ?? 0
  let next = Math.max(1, from.fromSequence ?? 1)
  /** Wanted only until something was seen: whatever follows that is later. */
  let fromTimestamp = from.fromTimestamp
  let endedAttempt = 0

  const passTo = (sequence: number): number | undefined => {
    if (sequence < next) return undefined
    const wanted = next
    next = sequence + 1
    fromTimestamp = undefined
    return wanted
  }

  const takeMarker = (marker: Marker): number | undefined => {
    switch (marker.kind) {
      case 'keepAlive':
      case 'jobEnded':
        return undefined
      case 'attemptEnded':
        if (endedAttempt >= attempt) return undefined
        endedAttempt = attempt
        return next
      case 'trimmed':
        return passTo(marker.before - 1)
      case 'missing':
      case 'damaged':
        return passTo(marker.to)
    }
  }

  return {
    whence: () => ({
      ...(attempt === 0 ? {} : { attempt }),
      ...(next === 1 ? {} : { fromSequence: next }),
      ...(fromTimestamp === undefined ? {} : { fromTimestamp }),
    }),
    take: (piece) => {
      // The end of the job is no matter of attempts.
      if ('marker' in piece && piece.marker.kind === 'jobEnded') return next
      if (piece.attempt < attempt) return undefined
      if (piece.attempt > attempt) {
        // The sequence that was asked for belongs to the attempt that the stream began with.
        if (attempt !== 0) next = 1
        attempt = piece.attempt
      }
      return 'marker' in piece ? takeMarker(piece.marker) : passTo(piece.last)
    },
  }
}
