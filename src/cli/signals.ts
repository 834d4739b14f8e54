// Signals. The first one asks, the second one insists (L05).

export const stopSignals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const
export type StopSignal = (typeof stopSignals)[number]

/** The port of signals: tests send them by hand. */
export interface Signals {
  /** Until the returned function is called, these signals no longer end the process by themselves. */
  listen(listener: (signal: StopSignal) => void): () => void
}

export interface Ladder {
  /** The signal that came first, if one did. */
  readonly received: StopSignal | undefined
  /** Resolves with the second signal: the owner stops waiting. */
  readonly insisted: Promise<StopSignal>
  /** Aborted by the first signal. */
  readonly signal: AbortSignal
  /** Signals are no longer ours. */
  release(): void
}

/** Listens until it is released. `first` is called once; every signal after it insists. */
export const createLadder = (signals: Signals, first: (signal: StopSignal) => void): Ladder => {
  const asked = new AbortController()
  let received: StopSignal | undefined
  let insist: (signal: StopSignal) => void = () => {}
  const insisted = new Promise<StopSignal>((resolve) => {
    insist = resolve
  })
  const release = signals.listen((signal) => {
    if (received !== undefined) return insist(signal)
    received = signal
    asked.abort()
    first(signal)
  })
  return {
    get received() {
      return received
    },
    insisted,
    signal: asked.signal,
    release,
  }
}
