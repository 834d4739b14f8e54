import { Observable, type OperatorFunction } from 'rxjs'
import type { Clock } from '../kernel/clock.ts'
import type { Random } from '../kernel/random.ts'
import { type BatcherHooks, createBatcher } from './batcher.ts'
import type { Flushed } from './flights.ts'
import type { Sealed } from './hold.ts'
import type { BatchLimits } from './limits.ts'

export interface BatchWithinHooks<Item> extends Omit<BatcherHooks<Item>, 'stuck'> {
  /**
   * What to do with a batch that is stuck. Without an answer the stream ends in the cause, and what is held is abandoned as
   * by an unsubscribe: the reports so far say what was acknowledged.
   */
  stuck?(sealed: Sealed<Item>, cause: unknown): 'retry' | 'discard' | Promise<'retry' | 'discard'>
  /**
   * Somebody waits for room: stop the source, soon. An Observable cannot be made to wait, so what it still emits is kept
   * outside of the marks, in order, until there is room.
   */
  pause?(): void
  /** Everybody is in: the source may go on. */
  resume?(): void
}

/**
 * chunks of items → sealed batches → flushed → reports of what was acknowledged, in order
 *
 * Time or count or bytes, whichever comes first, with the laws of the batcher. When the source completes, what is held is
 * flushed before the stream completes; when it fails, what was taken is flushed before the stream fails. An unsubscribe
 * revokes: a flush that is under way may still take effect, but nobody hears of it.
 */
export const batchWithin =
  <Item>(
    deps: { readonly clock: Clock; readonly random: Random },
    limits: BatchLimits,
    hooks: BatchWithinHooks<Item>,
  ): OperatorFunction<readonly Item[], Flushed<Item>> =>
  (chunks$) =>
    new Observable((subscriber) => {
      const batcher = createBatcher<Item>(deps, limits, {
        ...hooks,
        stuck: (sealed, cause) => void answer(sealed, cause),
        flushed: (report) => {
          subscriber.next(report)
          hooks.flushed?.(report)
        },
      })

      const answer = async (sealed: Sealed<Item>, cause: unknown): Promise<void> => {
        if (hooks.stuck === undefined) return subscriber.error(cause)
        try {
          if ((await hooks.stuck(sealed, cause)) === 'retry') batcher.retry()
          else batcher.discard()
        } catch (unanswered) {
          subscriber.error(unanswered)
        }
      }

      let waiting = 0
      const wait = (room: Promise<void>): void => {
        waiting += 1
        if (waiting === 1) hooks.pause?.()
        const entered = () => {
          waiting -= 1
          if (waiting === 0) hooks.resume?.()
        }
        room.then(entered, (cause: unknown) => subscriber.error(cause))
      }

      const take = (chunk: readonly Item[]): void => {
        if (subscriber.closed) return
        try {
          for (const item of chunk) {
            const room = batcher.add(item)
            if (room !== undefined) wait(room)
          }
        } catch (cause) {
          subscriber.error(cause)
        }
      }

      const drain = (end: () => void): void => {
        // A drain fails only by a revoke, and then there is nobody left to tell.
        batcher.drain().then(end, () => {})
      }

      // Before the source is subscribed: it may emit, complete and be unsubscribed all at once.
      subscriber.add(() => batcher.revoke())
      subscriber.add(
        chunks$.subscribe({
          next: take,
          error: (cause: unknown) => drain(() => subscriber.error(cause)),
          complete: () => drain(() => subscriber.complete()),
        }),
      )
    })
