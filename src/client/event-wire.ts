// Entries of a log as they travel, and as the rest of the program knows them.

import { create } from '@bufbuild/protobuf'
import {
  type JobEvent,
  StoredItemSchema,
  Stream,
  type ProcessEnd as WireEnd,
  type StoredItem as WireItem,
  type ProcessStart as WireStart,
} from '../../api/gen/millrace/v1/event_pb.js'
import type { Json } from '../jobs/job.ts'
import type { EndInfo, ProgressInfo, StartInfo } from '../log/attempt-log.ts'
import type { Encoding, EventType, StoredItem, StreamName } from '../log/event.ts'
import type { Marker } from '../log/follower.ts'
import { jsonOf, msOf, stateOf } from './job-wire.ts'

/** One event of a log, by itself. */
export type LogEvent = { readonly sequence: number; readonly timestamp: number } & (
  | { readonly kind: 'output'; readonly stream: StreamName; readonly output: Uint8Array; readonly continued: boolean }
  | ({ readonly kind: 'processStart' } & StartInfo)
  | ({ readonly kind: 'processEnd'; readonly startedAt: number | undefined } & EndInfo & {
        totals: readonly StreamTotal[]
      })
  | { readonly kind: 'processError'; readonly message: string }
  | ({ readonly kind: 'progress'; readonly data?: Json } & ProgressInfo)
  | { readonly kind: 'outputCut'; readonly stream: StreamName; readonly bytes: number; readonly reason: string }
  /** Of a newer server; there is something here that this version cannot read. */
  | { readonly kind: 'unknown'; readonly type: number }
)

export interface StreamTotal {
  readonly stream: StreamName
  readonly bytes: number
  readonly outputs: number
  readonly sha256: Uint8Array
}

/** What an event of the wire says: an entry of the log, or a marker that nobody stored. */
export const saidBy = (event: JobEvent): { readonly event: LogEvent } | { readonly marker: Marker } => {
  const marker = markerOf(event)
  return marker ? { marker } : { event: logEventOf(event) }
}

/** Undefined for what is stored. */
export const markerOf = ({ type, data }: JobEvent): Marker | undefined => {
  switch (data.case) {
    case 'attemptEnded': {
      const { lastSequence, complete } = data.value
      return { kind: 'attemptEnded', lastSequence: Number(lastSequence), complete }
    }
    case 'jobEnded': {
      const { state, result } = data.value
      return {
        kind: 'jobEnded',
        state: stateOf(state),
        result: jsonOf(result?.value),
        error: result?.error || undefined,
      }
    }
    case 'missing':
      return { kind: 'missing', from: Number(data.value.fromSequence), to: Number(data.value.toSequence) }
    case 'trimmed':
      return { kind: 'trimmed', before: Number(data.value.beforeSequence) }
    case 'damaged': {
      const { fromSequence, toSequence, reason } = data.value
      return { kind: 'damaged', from: Number(fromSequence), to: Number(toSequence), reason }
    }
    default:
      // A keep-alive says nothing, and so does a marker of a newer server.
      return type >= firstMarker ? { kind: 'keepAlive' } : undefined
  }
}

/** Types from here on are only ever sent, never stored. */
const firstMarker = 100

export const logEventOf = ({ sequence, timestamp, type, data }: JobEvent): LogEvent => {
  const head = { sequence: Number(sequence), timestamp: msOf(timestamp) ?? 0 }
  switch (data.case) {
    case 'output': {
      const { stream, output, continued } = data.value
      return { ...head, kind: 'output', stream: streamOf(stream), output, continued }
    }
    case 'processStart':
      return { ...head, kind: 'processStart', ...startOf(data.value) }
    case 'processEnd':
      return { ...head, kind: 'processEnd', ...endOf(data.value) }
    case 'processError':
      return { ...head, kind: 'processError', message: data.value.message }
    case 'progress': {
      const { fraction, text } = data.value
      const json = jsonOf(data.value.data)
      return {
        ...head,
        kind: 'progress',
        ...(fraction === undefined ? {} : { fraction }),
        ...(text ? { text } : {}),
        ...(json === undefined ? {} : { data: json }),
      }
    }
    case 'outputCut': {
      const { stream, bytes, reason } = data.value
      return { ...head, kind: 'outputCut', stream: streamOf(stream), bytes: Number(bytes), reason }
    }
    default:
      return { ...head, kind: 'unknown', type }
  }
}

export const itemOf = (item: WireItem): StoredItem => ({
  sequence: Number(item.sequence),
  endSequence: Number(item.endSequence),
  timestamp: Number(item.timestampMs),
  type: item.eventType as number as EventType,
  payload: item.payload,
  encoding: item.encoding as number as Encoding,
  crc: item.crc,
})

export const wireItem = (item: StoredItem): WireItem =>
  create(StoredItemSchema, {
    sequence: BigInt(item.sequence),
    endSequence: BigInt(item.endSequence),
    timestampMs: BigInt(item.timestamp),
    eventType: item.type as number,
    payload: item.payload,
    encoding: item.encoding as number,
    crc: item.crc,
  })

const streamOf = (stream: Stream): StreamName => (stream === Stream.STDERR ? 'stderr' : 'stdout')

const startOf = ({ attempt, workerId, pid, pidStart, argv, handler }: WireStart): StartInfo => ({
  attempt,
  workerId,
  ...(pid ? { pid } : {}),
  ...(pidStart ? { pidStart } : {}),
  ...(argv.length > 0 ? { argv } : {}),
  ...(handler ? { handler } : {}),
})

const endOf = ({ exitCode, signal, error, totals, startedAt }: WireEnd) => ({
  ...(exitCode === undefined ? {} : { exitCode }),
  ...(signal ? { signal } : {}),
  ...(error ? { error } : {}),
  startedAt: msOf(startedAt),
  totals: totals.map((total) => ({
    stream: streamOf(total.stream),
    bytes: Number(total.bytes),
    outputs: Number(total.outputs),
    sha256: total.sha256,
  })),
})
