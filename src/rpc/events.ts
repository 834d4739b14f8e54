// EventService: the log as a stream, as stored items or event by event.

import { create } from '@bufbuild/protobuf'
import type { ServiceImpl } from '@connectrpc/connect'
import { EventType, type JobEvent } from '../../api/gen/millrace/v1/event_pb.js'
import {
  type EventService,
  type StreamEventBatchesRequest,
  StreamEventBatchesResponseSchema,
  type StreamEventsRequest,
  StreamEventsResponseSchema,
} from '../../api/gen/millrace/v1/service_pb.js'
import { checkJobId } from '../jobs/check.ts'
import { InputInvalid } from '../jobs/faults.ts'
import type { Clock } from '../kernel/clock.ts'
import { eventTypes, type StoredItem } from '../log/event.ts'
import type { FollowRequest } from '../log/follower.ts'
import { type FollowDeps, followFor } from './follow.ts'
import { fromItem, fromMarker } from './translate-event.ts'
import { toMs, toNumber } from './translate-number.ts'

/** The events of an item one by one, from a sequence on; batches of output become single outputs. */
export type Unpack = (item: StoredItem, fromSequence: number) => Iterable<JobEvent>

export interface EventDeps extends FollowDeps {
  readonly clock: Pick<Clock, 'now'>
  readonly unpack: Unpack
}

export const createEventService = (deps: EventDeps): ServiceImpl<typeof EventService> => ({
  async *streamEvents(request, { signal }) {
    const asked = toFollowRequest(request)
    const isWanted = typeFilter(request.types)
    const since = asked.fromTimestamp ?? 0
    let first: number | undefined
    for await (const { attempt, ...entry } of followFor(deps, signal, asked)) {
      // Of an attempt that had nothing more to give, its end is all that comes.
      first ??= attempt
      if ('marker' in entry) {
        const event = fromMarker(attempt, entry.marker, deps.clock.now())
        yield create(StreamEventsResponseSchema, { attempt, event })
        continue
      }
      if (!isWanted(entry.item.type)) continue
      // The sequence that was asked for is one of the first attempt; the next one begins at its beginning.
      for (const event of deps.unpack(entry.item, attempt === first ? (asked.fromSequence ?? 1) : 1)) {
        if (since > 0 && timeOf(event) < since) continue
        yield create(StreamEventsResponseSchema, { attempt, event })
      }
    }
  },
  async *streamEventBatches(request, { signal }) {
    for await (const { attempt, ...entry } of followFor(deps, signal, toFollowRequest(request))) {
      yield create(StreamEventBatchesResponseSchema, {
        attempt,
        entry:
          'item' in entry
            ? { case: 'item', value: fromItem(entry.item) }
            : { case: 'marker', value: fromMarker(attempt, entry.marker, deps.clock.now()) },
      })
    }
  },
})

const toFollowRequest = (request: StreamEventsRequest | StreamEventBatchesRequest): FollowRequest => {
  checkJobId(request.jobId)
  const fromTimestamp = toMs('fromTimestamp', request.fromTimestamp)
  return {
    jobId: request.jobId,
    ...(request.attempt > 0 ? { attempt: request.attempt } : {}),
    fromSequence: Math.max(1, toNumber('fromSequence', request.fromSequence)),
    ...(fromTimestamp === undefined ? {} : { fromTimestamp }),
    noFollow: request.noFollow,
  }
}

/** Which items have events of the wanted types in them. An output is an output, stored alone or in a batch. */
const typeFilter = (types: readonly EventType[]): ((type: number) => boolean) => {
  for (const [at, type] of types.entries()) {
    if (EventType[type] === undefined || type === EventType.UNSPECIFIED) {
      throw new InputInvalid(`types[${at}]`, `${type} is no event type`)
    }
  }
  if (types.length === 0) return () => true
  const wanted = new Set<number>(types)
  if (wanted.has(eventTypes.output)) wanted.add(eventTypes.outputBatch)
  if (wanted.has(eventTypes.outputBatch)) wanted.add(eventTypes.output)
  return (type) => wanted.has(type)
}

const timeOf = ({ timestamp }: JobEvent): number =>
  timestamp === undefined ? 0 : Number(timestamp.seconds) * 1_000 + Math.floor(timestamp.nanos / 1_000_000)
