// Notices: what somebody in this process did to a job, told at once to whoever runs or watches it here. Nothing depends on
// them: heartbeats and reads of the row tell the same later.

export interface Notice {
  readonly cancelRequested?: true
  readonly watchedUntil?: number
  /** The row or the log changed: worth a look. */
  readonly changed?: true
}

export interface Notices {
  tell(jobId: string, notice: Notice): void
  listen(jobId: string, listener: (notice: Notice) => void): () => void
}

export const createNotices = (): Notices => {
  const listeners = new Map<string, Set<(notice: Notice) => void>>()
  return {
    tell: (jobId, notice) => {
      const all = listeners.get(jobId)
      // A copy, because a listener may leave while it is being told.
      if (all) for (const listener of [...all]) listener(notice)
    },
    listen: (jobId, listener) => {
      const all = listeners.get(jobId) ?? new Set()
      listeners.set(jobId, all.add(listener))
      return () => {
        all.delete(listener)
        if (all.size === 0 && listeners.get(jobId) === all) listeners.delete(jobId)
      }
    },
  }
}
