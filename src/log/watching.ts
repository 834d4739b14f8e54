import type { Clock, Timer } from '../kernel/clock.ts'
import { isFault } from '../kernel/fault.ts'
import type { Emit } from '../telemetry/events.ts'

/** Keeps jobs marked as watched while somebody here follows them; one mark for all who do. */
export interface Watching {
  /** The answer takes it back. */
  begin(jobId: string): () => void
}

/** Half of the time for which a mark counts. */
const renewMs = 30_000

export const createWatching = (deps: {
  readonly clock: Clock
  readonly emit: Emit
  watch(jobId: string): Promise<unknown>
}): Watching => {
  const { clock, emit } = deps
  const watched = new Map<string, { followers: number; timer: Timer }>()

  const mark = async (jobId: string): Promise<void> => {
    try {
      await deps.watch(jobId)
    } catch (cause) {
      // Without the mark, output comes a little later: no reason to end a stream.
      emit({
        name: 'warning',
        text: 'a job could not be marked as watched',
        ...(isFault(cause) ? { code: cause.code } : {}),
      })
    }
  }

  const renew = (jobId: string): Timer => {
    void mark(jobId)
    return clock.setTimeout(() => {
      const entry = watched.get(jobId)
      if (entry !== undefined) entry.timer = renew(jobId)
    }, renewMs)
  }

  return {
    begin: (jobId) => {
      const known = watched.get(jobId)
      if (known === undefined) watched.set(jobId, { followers: 1, timer: renew(jobId) })
      else known.followers += 1
      let isOver = false
      return () => {
        const entry = watched.get(jobId)
        if (isOver || entry === undefined) return
        isOver = true
        entry.followers -= 1
        if (entry.followers > 0) return
        clock.clearTimeout(entry.timer)
        watched.delete(jobId)
      }
    },
  }
}
