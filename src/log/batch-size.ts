import type { Trigger } from '../../machines/batch-buffer.ts'
import type { ExecutionConfig } from '../config/sections/jobs.ts'

/** How many outputs the next batch may hold: few while a process says little, many while it says much. */
export interface BatchSize {
  current(): number
  /** A batch was closed. `at` is monotonic. */
  closed(trigger: Trigger, at: number): void
}

/** Two batches that were closed by their count within this time show that output is fast. */
const fastMs = 200

/** Begins at the job's size, doubles after two fast batches up to the job's bound, and falls back when a batch has grown old. */
export const createBatchSize = ({ maxBatchSize, batchSizeBound }: ExecutionConfig): BatchSize => {
  let size = maxBatchSize
  let lastAt: number | undefined
  return {
    current: () => size,
    closed: (trigger, at) => {
      if (trigger === 'age') {
        size = maxBatchSize
        lastAt = undefined
      } else if (trigger === 'count') {
        const isFast = lastAt !== undefined && at - lastAt <= fastMs
        if (isFast) size = Math.min(2 * size, batchSizeBound)
        // Each pair counts once: the larger batches have to prove themselves as well.
        lastAt = isFast ? undefined : at
      }
    },
  }
}
