// Stored items as events, and as chunks: what a reader makes of a stream of items by itself.

import { create } from '@bufbuild/protobuf'
import { timestampFromMs } from '@bufbuild/protobuf/wkt'
import { JobEventSchema } from '../../api/gen/millrace/v1/event_pb.js'
import { eventTypes, type StoredItem, type StreamName } from '../log/event.ts'
import type { Entry, FollowRequest, Marker } from '../log/follower.ts'
import { columnsOf, type Damage, type LogEvent as Stored, unpackItem } from '../log/stored-batch.ts'
import { type LogEvent, logEventOf } from './event-wire.ts'
import type { FollowedEvent, FollowedItem } from './watch.ts'

/** Items with the first sequence that is wanted of each, without signs of life, which only a connection needs. */
export async function* wantedItems(
  entries: AsyncIterable<Entry>,
  { fromSequence = 1 }: Pick<FollowRequest, 'fromSequence'>,
): AsyncGenerator<FollowedItem, void, void> {
  let first: number | undefined
  for await (const entry of entries) {
    // Of an attempt that had nothing more to give, its end is all that comes: the next one begins at its beginning all the same.
    first ??= entry.attempt
    if ('marker' in entry) {
      if (entry.marker.kind !== 'keepAlive') yield entry
      continue
    }
    yield { ...entry, fromSequence: entry.attempt === first ? fromSequence : 1 }
  }
}

/** Every event by itself. */
export async function* unpackItems(items: AsyncIterable<FollowedItem>): AsyncGenerator<FollowedEvent, void, void> {
  for await (const entry of items) {
    if ('marker' in entry) yield entry
    else yield* eventsOf(entry.attempt, entry.item, entry.fromSequence)
  }
}

/** Consecutive outputs of one stream in one piece, where only the bytes matter and an object per line would be waste. */
export interface Chunk {
  readonly kind: 'chunk'
  readonly sequence: number
  readonly endSequence: number
  readonly timestamp: number
  readonly stream: StreamName
  readonly bytes: Uint8Array
}

export type FollowedChunk = FollowedEvent | { readonly attempt: number; readonly chunk: Chunk }

/** Outputs in chunks, everything else by itself. */
export async function* unpackChunks(items: AsyncIterable<FollowedItem>): AsyncGenerator<FollowedChunk, void, void> {
  for await (const entry of items) {
    if ('marker' in entry) yield entry
    else if (entry.item.type !== eventTypes.outputBatch) yield* eventsOf(entry.attempt, entry.item, entry.fromSequence)
    else yield* chunksOf(entry.attempt, entry.item, entry.fromSequence)
  }
}

function* eventsOf(attempt: number, item: StoredItem, from: number): Generator<FollowedEvent, void, void> {
  const unpacked = unpackItem(item, from)
  if ('damage' in unpacked) yield { attempt, marker: damaged(item, unpacked) }
  else for (const event of unpacked.events) yield { attempt, event: eventOf(event) }
}

function* chunksOf(attempt: number, item: StoredItem, from: number): Generator<FollowedChunk, void, void> {
  const columns = columnsOf(item)
  if ('damage' in columns) return yield { attempt, marker: damaged(item, columns) }
  const { sequence, data, ends, runs } = columns
  let timestamp = columns.timestamp
  let place = 0
  for (let run = 0; run < runs.length; run += 3) {
    const first = Math.max(place, from - sequence)
    place += runs[run] as number
    timestamp += runs[run + 2] as number
    if (first >= place) continue
    const start = first === 0 ? 0 : (ends[first - 1] as number)
    yield {
      attempt,
      chunk: {
        kind: 'chunk',
        sequence: sequence + first,
        endSequence: sequence + place - 1,
        timestamp,
        stream: runs[run + 1] === 2 ? 'stderr' : 'stdout',
        bytes: data.subarray(start, ends[place - 1]),
      },
    }
  }
}

const damaged = ({ sequence, endSequence }: StoredItem, { damage }: Damage): Marker => ({
  kind: 'damaged',
  from: sequence,
  to: endSequence,
  reason: damage,
})

const eventOf = ({
  sequence,
  timestamp,
  type,
  output,
  stream = 'stdout',
  continued = false,
  data,
}: Stored): LogEvent => {
  if (output) return { kind: 'output', sequence, timestamp, stream, output, continued }
  const wire = { sequence: BigInt(sequence), timestamp: timestampFromMs(timestamp), type: type as number }
  return logEventOf(create(JobEventSchema, data ? { ...wire, data } : wire))
}
