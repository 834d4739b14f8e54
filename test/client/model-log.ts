// A job's log as a list, and a server of it that answers as the contract says and breaks off where it is told to.

import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import { timestampFromMs } from '@bufbuild/protobuf/wkt'
import { Code, ConnectError, type ServiceImpl } from '@connectrpc/connect'
import { EventType, type JobEvent, JobEventSchema, Stream } from '../../api/gen/millrace/v1/event_pb.js'
import { JobState } from '../../api/gen/millrace/v1/job_pb.js'
import type { EventService } from '../../api/gen/millrace/v1/service_pb.js'
import type { StoredItem } from '../../src/log/event.ts'

export const startedAt = 1_750_000_000_000

export interface Line {
  readonly sequence: number
  readonly timestamp: number
  readonly text: string
}

/** A batch of lines as one item; the line of sequence n says so, and was written n ms after the start. */
export const batchItem = (first: number, count: number, filler = ''): StoredItem => {
  const lines = Array.from({ length: count }, (_, at) => Buffer.from(`line ${first + at}${filler}\n`))
  const payload = toBinary(
    JobEventSchema,
    create(JobEventSchema, {
      sequence: BigInt(first),
      timestamp: timestampFromMs(startedAt + first),
      type: EventType.OUTPUT_BATCH,
      data: {
        case: 'outputBatch',
        value: {
          startSequence: BigInt(first),
          endSequence: BigInt(first + count - 1),
          data: Buffer.concat(lines),
          lengths: lines.map(({ length }) => length),
          runs: lines.flatMap((_, at) => [1, Stream.STDOUT, at === 0 ? 0 : 1]),
        },
      },
    }),
  )
  const timestamp = startedAt + first
  return { sequence: first, endSequence: first + count - 1, timestamp, type: 2, payload, encoding: 0, crc: 0 }
}

/** The plain decoder: what a batch holds, by the schema alone. */
export const unpackLines = (item: StoredItem, fromSequence: number): readonly Line[] => {
  const { data, timestamp } = fromBinary(JobEventSchema, item.payload)
  if (data.case !== 'outputBatch') throw new Error('not a batch')
  const { lengths, runs, data: bytes } = data.value
  const lines: Line[] = []
  let offset = 0
  let at = Number(timestamp?.seconds ?? 0n) * 1_000 + (timestamp?.nanos ?? 0) / 1_000_000
  for (const [index, length] of lengths.entries()) {
    at += runs[index * 3 + 2] as number
    const text = Buffer.from(bytes.subarray(offset, offset + length)).toString()
    offset += length
    const sequence = item.sequence + index
    if (sequence >= fromSequence) lines.push({ sequence, timestamp: at, text })
  }
  return lines
}

export interface ModelAttempt {
  /** How many lines each item holds. */
  readonly batches: readonly number[]
  readonly complete: boolean
}

export interface Asked {
  readonly attempt: number
  readonly fromSequence: number
  readonly at: number
}

type Marked =
  | { readonly attempt: number; readonly item: StoredItem }
  | { readonly attempt: number; readonly marker: JobEvent }

const marker = (type: EventType, data: JobEvent['data']): JobEvent => create(JobEventSchema, { type, data })

/** Everything that a stream of the whole job says from a place on. */
const wholeLog = (attempts: readonly ModelAttempt[], attempt: number, fromSequence: number): readonly Marked[] =>
  attempts.slice(attempt - 1).flatMap(({ batches, complete }, place): readonly Marked[] => {
    const number = attempt + place
    const from = place === 0 ? Math.max(1, fromSequence) : 1
    let next = 1
    const items = batches.map((count) => {
      next += count
      return batchItem(next - count, count)
    })
    const ended = { attempt: number, lastSequence: BigInt(next - 1), complete }
    const isLast = number === attempts.length
    return [
      ...items.filter(({ endSequence }) => endSequence >= from).map((item) => ({ attempt: number, item })),
      {
        attempt: number,
        marker: marker(EventType.ATTEMPT_ENDED, { case: 'attemptEnded', value: ended } as JobEvent['data']),
      },
      ...(isLast
        ? [
            {
              attempt: number,
              marker: marker(EventType.JOB_ENDED, {
                case: 'jobEnded',
                value: { state: JobState.COMPLETED },
              } as JobEvent['data']),
            },
          ]
        : []),
    ]
  })

/** Serves the log. `cuts` says after how many messages each connection breaks off; when it is used up, none does. */
export const modelEvents = (
  attempts: readonly ModelAttempt[],
  cuts: number[],
  asked: Asked[] = [],
  now = () => 0,
): Required<ServiceImpl<typeof EventService>> => {
  async function* cutting<Message>(messages: Iterable<Message>) {
    const cut = cuts.shift() ?? Number.POSITIVE_INFINITY
    let sent = 0
    for (const message of messages) {
      if (sent >= cut) throw new ConnectError('the connection is gone', Code.Aborted)
      sent += 1
      yield message
    }
  }
  const open = (request: { attempt: number; fromSequence: bigint }) => {
    asked.push({ attempt: request.attempt, fromSequence: Number(request.fromSequence), at: now() })
    return wholeLog(attempts, request.attempt || 1, Number(request.fromSequence))
  }
  return {
    streamEventBatches: (request) =>
      cutting(
        open(request).map((one) =>
          'item' in one
            ? { attempt: one.attempt, entry: { case: 'item' as const, value: wireOf(one.item) } }
            : { attempt: one.attempt, entry: { case: 'marker' as const, value: one.marker } },
        ),
      ),
    streamEvents: (request) =>
      cutting(
        open(request).flatMap((one, place) => {
          if ('marker' in one) return [{ attempt: one.attempt, event: one.marker }]
          const from = place === 0 ? Number(request.fromSequence) : 1
          return unpackLines(one.item, from).map(({ sequence, timestamp, text }) => ({
            attempt: one.attempt,
            event: create(JobEventSchema, {
              sequence: BigInt(sequence),
              timestamp: timestampFromMs(timestamp),
              type: EventType.OUTPUT,
              data: { case: 'output', value: { output: Buffer.from(text), stream: Stream.STDOUT, continued: false } },
            }),
          }))
        }),
      ),
  }
}

const wireOf = (item: StoredItem) => ({
  sequence: BigInt(item.sequence),
  endSequence: BigInt(item.endSequence),
  timestampMs: BigInt(item.timestamp),
  eventType: item.type as number,
  payload: item.payload,
  encoding: item.encoding as number,
  crc: item.crc,
})
