// Items of events that come whole, for writers that have no log of their own: a handler that said nothing, a caller of the API.

import { toBinary } from '@bufbuild/protobuf'
import { timestampMs } from '@bufbuild/protobuf/wkt'
import { type JobEvent, JobEventSchema } from '../../api/gen/millrace/v1/event_pb.js'
import { assert } from '../kernel/assert.ts'
import type { Tables } from '../tables/port.ts'
import type { EndInfo } from './attempt-log.ts'
import { type EventType, eventTypes, type StoredItem } from './event.ts'
import { eventsTable, itemOf } from './keys.ts'
import { deflateNow, type EventHead, packItem } from './payload.ts'
import { encodeSingle, processEnd } from './single-event.ts'

/** The PROCESS_END of a log in which nothing was output. */
export const bareEnd = (end: EndInfo, sequence: number, at: number): StoredItem => {
  const type = eventTypes.processEnd
  return packNow(
    { sequence, endSequence: sequence, timestamp: at, type },
    encodeSingle(processEnd(end, [], at), sequence, at),
  )
}

/**
 * The PROCESS_END to settle an attempt with whose worker sent none: the one that its log has already, because the call may be a
 * repetition, or one that stands behind everything else in it.
 */
export const endAfter = async (
  tables: Pick<Tables, 'query'>,
  log: string,
  end: EndInfo,
  after: number,
  at: number,
): Promise<StoredItem> => {
  const page = await tables.query(eventsTable.name, { partition: log, descending: true, limit: 1 })
  const last = page.entries[0] === undefined ? undefined : itemOf(page.entries[0])
  if (last?.type === eventTypes.processEnd) return last
  return bareEnd(end, Math.max(after, last?.endSequence ?? 0) + 1, at)
}

/** Events as their writer made them, each an item with the sequences and the time that it says. */
export const encodeEvents = (events: readonly JobEvent[]): readonly StoredItem[] =>
  events.map((event) => {
    const sequence = Number(event.sequence)
    const endSequence = event.data.case === 'outputBatch' ? Number(event.data.value.endSequence) : sequence
    const timestamp = event.timestamp ? timestampMs(event.timestamp) : 0
    const head = { sequence, endSequence, timestamp, type: event.type as number as EventType }
    return packNow(head, toBinary(JobEventSchema, event))
  })

const packNow = (head: EventHead, plain: Uint8Array): StoredItem => {
  const item = packItem(head, plain, deflateNow)
  assert(!(item instanceof Promise), 'a compressor that works at once took its time')
  return item
}
