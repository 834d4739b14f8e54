import type { Clock } from '../../kernel/clock.ts'
import { QueueUnavailable } from '../faults.ts'

/** Runs `work` with a controller that is aborted as soon as any of the signals is, and leaves no listener behind. */
export const linked = async <Result>(
  signals: readonly (AbortSignal | undefined)[],
  work: (controller: AbortController) => Promise<Result>,
): Promise<Result> => {
  const controller = new AbortController()
  const abort = () => controller.abort()
  if (signals.some((signal) => signal?.aborted)) abort()
  for (const signal of signals) signal?.addEventListener('abort', abort, { once: true })
  try {
    return await work(controller)
  } finally {
    for (const signal of signals) signal?.removeEventListener('abort', abort)
  }
}

/**
 * Runs `work` for at most `ms` on our clock; then aborts it and fails. It does not wait for the work to notice: a socket that
 * is half open never does.
 */
export const withDeadline = <Result>(
  clock: Clock,
  ms: number,
  signal: AbortSignal | undefined,
  work: (signal: AbortSignal) => Promise<Result>,
): Promise<Result> =>
  linked(
    [signal],
    (controller) =>
      new Promise<Result>((resolve, reject) => {
        const end = () => reject(new QueueUnavailable('the call was aborted'))
        if (controller.signal.aborted) return end()
        const timer = clock.setTimeout(() => {
          reject(new QueueUnavailable(`no answer within ${ms} ms`, { limit: ms }))
          controller.abort()
        }, ms)
        controller.signal.addEventListener('abort', end, { once: true })
        work(controller.signal)
          .then(resolve, reject)
          .finally(() => clock.clearTimeout(timer))
      }),
  )
