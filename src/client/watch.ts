import { timestampFromMs } from '@bufbuild/protobuf/wkt'
import { createClient, type Transport } from '@connectrpc/connect'
import { EventService } from '../../api/gen/millrace/v1/service_pb.js'
import { type EventType, eventTypes, type StoredItem } from '../log/event.ts'
import type { Entry, FollowRequest, Marker } from '../log/follower.ts'
import { itemOf, type LogEvent, markerOf, saidBy } from './event-wire.ts'
import type { Piece, Whence } from './position.ts'
import { createResumingStream, type Resumed, type StreamDeps, type StreamOptions } from './resuming-stream.ts'

export type EventName = keyof typeof eventTypes

export interface FollowEventsRequest extends FollowRequest {
  /** All if absent. Markers always come. */
  readonly types?: readonly Exclude<EventName, 'outputBatch'>[]
}

/** One event, or what a stream says that nobody stored. Keep-alives are not handed on. */
export type FollowedEvent =
  | { readonly attempt: number; readonly event: LogEvent }
  | { readonly attempt: number; readonly marker: Marker }

/** A stored item, whole; the events before `fromSequence` in it are not wanted. */
export type FollowedItem =
  | (Extract<Entry, { readonly item: StoredItem }> & { readonly fromSequence: number })
  | Extract<Entry, { readonly marker: Marker }>

/** For those who watch. Streams outlive their connections and end with `jobEnded`, or with what is stored if asked so. */
export interface Watching {
  /** Event by event. */
  follow(request: FollowEventsRequest): AsyncGenerator<FollowedEvent, void, void>
  /** Item by item, as stored, for those who unpack them themselves: far cheaper for much output. */
  followBatches(request: FollowRequest): AsyncGenerator<FollowedItem, void, void>
}

export const createWatching = (
  deps: StreamDeps & { readonly transport: Transport },
  options: StreamOptions,
): Watching => {
  const service = createClient(EventService, deps.transport)
  const resume = createResumingStream(deps, options)
  return {
    follow: (request) =>
      mapped(
        resume<LogEvent>({
          ...common(request),
          open: (whence, signal) => {
            const types = (request.types ?? []).map((name): number => eventTypes[name] satisfies EventType)
            return mapped(
              service.streamEvents({ ...wanted(request, whence), types }, { signal }),
              ({ attempt, event }) => pieceOfEvent(attempt, event && saidBy(event)),
            )
          },
        }),
        (piece) => ('marker' in piece ? plainMarker(piece) : { attempt: piece.attempt, event: piece.stored }),
      ),
    followBatches: (request) =>
      mapped(
        resume<StoredItem>({
          ...common(request),
          open: (whence, signal) =>
            mapped(service.streamEventBatches(wanted(request, whence), { signal }), ({ attempt, entry }) =>
              entry.case === 'item'
                ? pieceOfItem(attempt, itemOf(entry.value))
                : { attempt, marker: (entry.value && markerOf(entry.value)) ?? keepAlive },
            ),
        }),
        (piece) =>
          'marker' in piece
            ? plainMarker(piece)
            : { attempt: piece.attempt, item: piece.stored, fromSequence: piece.fromSequence },
      ),
  }
}

const keepAlive: Marker = { kind: 'keepAlive' }

const common = ({ attempt, fromSequence, fromTimestamp, noFollow = false, signal }: FollowRequest) => ({
  whence: {
    ...(attempt === undefined ? {} : { attempt }),
    ...(fromSequence === undefined ? {} : { fromSequence }),
    ...(fromTimestamp === undefined ? {} : { fromTimestamp }),
  },
  noFollow,
  signal,
})

const wanted = ({ jobId, noFollow = false }: FollowRequest, { attempt, fromSequence, fromTimestamp }: Whence) => ({
  jobId,
  attempt: attempt ?? 0,
  fromSequence: BigInt(fromSequence ?? 0),
  ...(fromTimestamp === undefined ? {} : { fromTimestamp: timestampFromMs(fromTimestamp) }),
  noFollow,
})

const pieceOfEvent = (attempt: number, said: ReturnType<typeof saidBy> = { marker: keepAlive }): Piece<LogEvent> =>
  'marker' in said
    ? { attempt, marker: said.marker }
    : { attempt, first: said.event.sequence, last: said.event.sequence, stored: said.event }

const pieceOfItem = (attempt: number, item: StoredItem): Piece<StoredItem> => ({
  attempt,
  first: item.sequence,
  last: item.endSequence,
  stored: item,
})

const plainMarker = ({ attempt, marker }: Extract<Resumed<unknown>, { readonly marker: Marker }>) => ({
  attempt,
  marker,
})

/** Ends what it reads from when it is ended itself. */
async function* mapped<From, To>(
  values: AsyncIterable<From>,
  map: (value: From) => To,
): AsyncGenerator<To, void, void> {
  for await (const value of values) yield map(value)
}
