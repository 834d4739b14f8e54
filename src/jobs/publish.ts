// Publishing: storing entries of an attempt's log. The items are plain puts, and the job row is read before them: what slips
// through between the two lands in the log of a dead attempt, where nobody reads as current.

import { isFault } from '../kernel/fault.ts'
import type { StoredItem } from '../log/event.ts'
import { eventsTable, itemRow, logId } from '../log/keys.ts'
import type { Write } from '../tables/port.ts'
import { decideAll, readJobRow, type StoreContext } from './context.ts'
import { InputInvalid } from './faults.ts'
import type { Hold, Renewal } from './job.ts'
import { executionOf } from './keys.ts'
import { assertHeld, logTtl, renewalOf } from './moves.ts'

/** The most items of one call. */
export const publishItemsMax = 25
/** Of an item with everything around it, below the limit of the strictest backend. */
export const itemBytesMax = 390 * 1_024

/** Stores the items; the answer carries what the worker should know. Storing the same items twice changes nothing. */
export const publish = async (context: StoreContext, hold: Hold, items: readonly StoredItem[]): Promise<Renewal> => {
  const row = assertHeld(context, await readJobRow(context, hold.jobId), hold, 'publish')
  checkItems(items, executionOf(row).batchSizeBound)
  const ttl = logTtl(context)
  const log = logId(hold.jobId, hold.attempt)
  const writes = items.map(
    (item): Write => ({
      actions: [{ kind: 'put', table: eventsTable.name, row: itemRow(log, item, ttl) }],
      lane: 'log',
    }),
  )
  for (const decided of await decideAll(context, writes)) if (isFault(decided)) throw decided
  return renewalOf(row)
}

const checkItems = (items: readonly StoredItem[], bound: number): void => {
  if (items.length > publishItemsMax)
    throw new InputInvalid('items', `are more than ${publishItemsMax}`, { limit: publishItemsMax })
  let last = 0
  for (const { sequence, endSequence, payload } of items) {
    const isWhole = Number.isSafeInteger(sequence) && Number.isSafeInteger(endSequence)
    if (!isWhole || sequence < 1 || endSequence < sequence) {
      throw new InputInvalid('items', `from ${sequence} to ${endSequence} is no range of sequences`)
    }
    if (sequence <= last) throw new InputInvalid('items', `${sequence} comes after ${last}: sequences must rise`)
    if (endSequence - sequence >= bound) {
      throw new InputInvalid('items', `a batch has more than the ${bound} events this job allows`, { limit: bound })
    }
    if (payload.length > itemBytesMax) {
      throw new InputInvalid('items', `an item has ${payload.length} bytes, more than ${itemBytesMax}`, {
        limit: itemBytesMax,
      })
    }
    last = endSequence
  }
}
