import type { BufferLimits } from '../../machines/batch-buffer.ts'
import { BatchLimitsRefused } from './faults.ts'

export interface BatchLimits extends BufferLimits {
  /** The most items in a batch. */
  readonly count: number
  /** The most bytes in a batch; an item that is larger travels alone. */
  readonly bytes: number
  /** High-water mark: the most items that are held, those in flight included. */
  readonly heldCount: number
  /** High-water mark in bytes. Only a single item that is larger than the mark itself passes it, alone. */
  readonly heldBytes: number
}

/**
 * Refuses limits that contradict each other. A batch is opened only if what is held plus one full batch stays within the
 * marks (law B4), so with a mark below two batches nothing could collect while a full one is in flight.
 */
export const checkLimits = (limits: BatchLimits): void => {
  const { count, bytes, ageMs, heldCount, heldBytes, retry } = limits
  if (!Number.isInteger(count))
    throw new BatchLimitsRefused(`count is ${count} and must be a whole number`, { field: 'count' })
  demand('count', count, 1, Number.MAX_SAFE_INTEGER)
  demand('bytes', bytes, 1, Number.POSITIVE_INFINITY)
  demand('ageMs', ageMs, 0, timerMaxMs)
  demand('heldCount', heldCount, 2 * count, Number.POSITIVE_INFINITY)
  demand('heldBytes', heldBytes, 2 * bytes, Number.POSITIVE_INFINITY)
  demand('retry.attemptsMax', retry.attemptsMax, 1, Number.POSITIVE_INFINITY)
  demand('retry.baseMs', retry.baseMs, 0, timerMaxMs)
  demand('retry.capMs', retry.capMs, 0, timerMaxMs)
}

/** A longer timer fires at once on Node. */
const timerMaxMs = 2 ** 31 - 1

const demand = (field: string, value: number, least: number, most: number): void => {
  // Written so that NaN is refused as well.
  if (value >= least && value <= most) return
  const [limit, bound] = value > most ? [most, 'at most'] : [least, 'at least']
  throw new BatchLimitsRefused(`${field} is ${value} and must be ${bound} ${limit}`, { field, limit })
}
