// Entries of a log ↔ messages of api/millrace/v1/event.proto.

import { crc32 } from 'node:zlib'
import { create } from '@bufbuild/protobuf'
import {
  EventType as EventNumber,
  type JobEvent,
  JobEventSchema,
  type StoredItem as StoredItemMessage,
  StoredItemSchema,
} from '../../api/gen/millrace/v1/event_pb.js'
import { InputInvalid } from '../jobs/faults.ts'
import { type JobState, jobStates } from '../jobs/transitions.ts'
import { unreachable } from '../kernel/assert.ts'
import { type Encoding, type EventType, encodings, eventTypes, type StoredItem } from '../log/event.ts'
import type { Marker } from '../log/follower.ts'
import { fromResult, fromState } from './translate-job.ts'
import { toMs, toNumber, toTimestamp } from './translate-number.ts'

const storedTypes = new Set<number>(Object.values(eventTypes))
const storedEncodings = new Set<number>(Object.values(encodings))

/** An item as a worker sent it. `field` names it in the request. */
export const toItem = (field: string, message: StoredItemMessage): StoredItem => {
  const { eventType, encoding, payload, crc } = message
  if (!storedTypes.has(eventType)) throw new InputInvalid(`${field}.eventType`, `${eventType} is no stored event`)
  if (!storedEncodings.has(encoding)) throw new InputInvalid(`${field}.encoding`, `${encoding} is no encoding`)
  // A damaged item would be found out when somebody reads it; now the worker can still send it again.
  if (crc32(payload) !== crc) throw new InputInvalid(`${field}.crc`, 'does not match the payload')
  return {
    sequence: toNumber(`${field}.sequence`, message.sequence, 1),
    endSequence: toNumber(`${field}.endSequence`, message.endSequence, 1),
    timestamp: toNumber(`${field}.timestampMs`, message.timestampMs),
    type: eventType as number as EventType,
    // The decoder gives a view of the whole request, which would be kept as long as the item.
    payload: payload.slice(),
    encoding: encoding as number as Encoding,
    crc,
  }
}

/** The bytes that were stored are the bytes that travel. */
export const fromItem = (item: StoredItem): StoredItemMessage =>
  create(StoredItemSchema, {
    sequence: BigInt(item.sequence),
    endSequence: BigInt(item.endSequence),
    timestampMs: BigInt(item.timestamp),
    eventType: item.type as number,
    payload: item.payload as Uint8Array<ArrayBuffer>,
    encoding: item.encoding as number,
    crc: item.crc,
  })

const cases: Readonly<Record<number, JobEvent['data']['case']>> = {
  [EventNumber.OUTPUT]: 'output',
  [EventNumber.OUTPUT_BATCH]: 'outputBatch',
  [EventNumber.PROCESS_START]: 'processStart',
  [EventNumber.PROCESS_END]: 'processEnd',
  [EventNumber.PROCESS_ERROR]: 'processError',
  [EventNumber.PROGRESS]: 'progress',
  [EventNumber.OUTPUT_CUT]: 'outputCut',
}

/** An event as a worker sent it that leaves the encoding to us: checked, and with a time if it has none. */
export const toEvent = (field: string, event: JobEvent, now: number): JobEvent => {
  const expected = cases[event.type]
  if (expected === undefined) throw new InputInvalid(`${field}.type`, `${event.type} is no stored event`)
  if (event.data.case !== expected) throw new InputInvalid(`${field}.data`, `an event of this type has '${expected}'`)
  toNumber(`${field}.sequence`, event.sequence, 1)
  if (event.data.case === 'outputBatch') {
    toNumber(`${field}.outputBatch.startSequence`, event.data.value.startSequence, 1)
    toNumber(`${field}.outputBatch.endSequence`, event.data.value.endSequence, 1)
  }
  const fraction = event.data.case === 'progress' ? event.data.value.fraction : undefined
  if (fraction !== undefined && !(fraction >= 0 && fraction <= 1)) {
    throw new InputInvalid(`${field}.progress.fraction`, `must be from 0 to 1, not ${fraction}`)
  }
  return toMs(`${field}.timestamp`, event.timestamp) === undefined ? { ...event, timestamp: toTimestamp(now) } : event
}

/** What is not stored, as an event of a type from 100 on. */
export const fromMarker = (attempt: number, marker: Marker, now: number): JobEvent =>
  create(JobEventSchema, { timestamp: toTimestamp(now), ...markerData(attempt, marker) })

const markerData = (attempt: number, marker: Marker): Pick<Parameters<typeof event>[0], 'type' | 'data'> => {
  switch (marker.kind) {
    case 'attemptEnded': {
      const value = { attempt, lastSequence: BigInt(marker.lastSequence), complete: marker.complete }
      return event({ type: EventNumber.ATTEMPT_ENDED, data: { case: 'attemptEnded', value } })
    }
    case 'jobEnded': {
      const state = jobStates.includes(marker.state as JobState) ? fromState(marker.state as JobState) : 0
      const value = { state, result: fromResult(marker.result, marker.error) }
      return event({ type: EventNumber.JOB_ENDED, data: { case: 'jobEnded', value } })
    }
    case 'missing': {
      const value = { fromSequence: BigInt(marker.from), toSequence: BigInt(marker.to) }
      return event({ type: EventNumber.MISSING, data: { case: 'missing', value } })
    }
    case 'trimmed':
      return event({
        type: EventNumber.TRIMMED,
        data: { case: 'trimmed', value: { beforeSequence: BigInt(marker.before) } },
      })
    case 'damaged': {
      const value = { fromSequence: BigInt(marker.from), toSequence: BigInt(marker.to), reason: marker.reason }
      return event({ type: EventNumber.DAMAGED, data: { case: 'damaged', value } })
    }
    case 'keepAlive':
      return event({ type: EventNumber.KEEP_ALIVE })
    default:
      return unreachable(marker)
  }
}

const event = (init: Exclude<Parameters<typeof create<typeof JobEventSchema>>[1], undefined>) => init
