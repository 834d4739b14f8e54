/** A signal that is aborted by any of several others, until it is let go: signals that live long keep no trace of it then. */
export interface LinkedSignal {
  readonly signal: AbortSignal
  abort(): void
  release(): void
}

export const linkSignals = (...others: readonly (AbortSignal | undefined)[]): LinkedSignal => {
  const controller = new AbortController()
  const abort = () => controller.abort()
  for (const other of others) {
    if (other?.aborted) abort()
    else other?.addEventListener('abort', abort, { once: true })
  }
  return {
    signal: controller.signal,
    abort,
    release: () => {
      for (const other of others) other?.removeEventListener('abort', abort)
    },
  }
}
