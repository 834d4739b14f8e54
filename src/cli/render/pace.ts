import type { LogEvent } from '../log-event.ts'

/** How fast a finished job is played back (R0.31). */
export type Pace =
  | { readonly kind: 'fast' }
  /** A fixed pause between two outputs: the job's own playback interval, times a factor. */
  | { readonly kind: 'interval'; readonly ms: number }
  /** As the job wrote them, times a factor. */
  | { readonly kind: 'recorded'; readonly factor: number }

/** Nobody wants to sit through the night that a job spent waiting. */
const recordedPauseMsMax = 10_000

/** How long to wait before each event. Pure but for what it remembers of the event before. */
export const createPacer = (pace: Pace): ((event: LogEvent) => number) => {
  let before: { readonly timestamp: number; readonly attempt: number } | undefined
  return (event) => {
    if (event.kind !== 'output') return 0
    const last = before
    before = event
    if (last === undefined || pace.kind === 'fast') return 0
    if (pace.kind === 'interval') return pace.ms
    const elapsed = last.attempt === event.attempt ? Math.max(0, event.timestamp - last.timestamp) : 0
    return Math.min(recordedPauseMsMax, elapsed * pace.factor)
  }
}
