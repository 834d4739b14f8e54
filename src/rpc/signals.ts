/** Aborted when the first of them is. `unlink` must be called: one of the signals outlives the other by far. */
export const link = (...signals: readonly AbortSignal[]): { readonly signal: AbortSignal; unlink(): void } => {
  const controller = new AbortController()
  const abort = () => {
    unlink()
    controller.abort(signals.find(({ aborted }) => aborted)?.reason)
  }
  const unlink = () => {
    for (const signal of signals) signal.removeEventListener('abort', abort)
  }
  for (const signal of signals) signal.addEventListener('abort', abort)
  if (signals.some(({ aborted }) => aborted)) abort()
  return { signal: controller.signal, unlink }
}

/** The work's own outcome, or the signal's reason as soon as it is aborted; the work may then go on for nobody. */
export const untilAborted = <T>(work: Promise<T>, signal: AbortSignal): Promise<T> =>
  new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason)
    const done = () => signal.removeEventListener('abort', abort)
    signal.addEventListener('abort', abort)
    if (signal.aborted) abort()
    work.then(
      (value) => {
        done()
        resolve(value)
      },
      (error) => {
        done()
        reject(error)
      },
    )
  })
