import { assert } from '../kernel/assert.ts'
import type { Row, TableSchema, Value } from '../tables/port.ts'
import type { Encoding, EventType, StoredItem } from './event.ts'

/** Each attempt has a log of its own: a second run never overwrites the first, and a stale worker writes where nobody reads. */
export const eventsTable: TableSchema = {
  name: 'job_events',
  partition: 'log_id',
  sort: { attribute: 'sequence', type: 'number' },
  ttl: 'ttl',
  indexes: {},
}

export const logId = (jobId: string, attempt: number): string => `${jobId}#${attempt}`

/** An item as a row of the events table. `ttl` is the second after which it is rubbish. */
export const itemRow = (log: string, item: StoredItem, ttl: number): Row => {
  // Both sides of the boundary are checked: an empty item would hide every event behind it.
  assert(item.endSequence >= item.sequence && item.sequence >= 1, 'an empty item was to be stored')
  return {
    log_id: log,
    sequence: item.sequence,
    end_sequence: item.endSequence,
    timestamp: item.timestamp,
    event_type: item.type,
    event_payload: item.payload,
    encoding: item.encoding,
    crc: item.crc,
    ttl,
  }
}

/** The item of a row; undefined if somebody else wrote the row and it is not one of ours. */
export const itemOf = (row: Row): StoredItem | undefined => {
  const payload = row['event_payload']
  const sequence = whole(row['sequence'])
  const endSequence = whole(row['end_sequence'])
  if (!(payload instanceof Uint8Array) || sequence === undefined || endSequence === undefined) return undefined
  if (endSequence < sequence) return undefined
  return {
    sequence,
    endSequence,
    timestamp: whole(row['timestamp']) ?? 0,
    type: (whole(row['event_type']) ?? 0) as EventType,
    payload,
    encoding: (whole(row['encoding']) ?? 0) as Encoding,
    crc: whole(row['crc']) ?? 0,
  }
}

const whole = (value: Value | undefined): number | undefined =>
  typeof value === 'number' && Number.isSafeInteger(value) ? value : undefined
