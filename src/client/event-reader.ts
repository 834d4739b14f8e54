import type { StoredItem } from '../log/event.ts'
import type { Marker } from '../log/follower.ts'
import { createEventBuffer, type EventBufferOptions, type Placed } from './event-buffer.ts'
import type { FollowedItem } from './watch.ts'

/** Reads the log of one attempt, forwards and back. One call of `next` at a time. */
export interface EventReader<Event> {
  /** The next event or marker, waiting for it; undefined when the attempt has ended. */
  next(): Promise<{ readonly event: Event } | { readonly marker: Marker } | undefined>
  /** Goes on from that sequence: out of the buffer, or by asking for it again. */
  rewind(toSequence: number): void
  close(): Promise<void>
}

export interface EventReaderDeps<Event extends Placed> {
  /** The attempt's items from a sequence on, such as `client.followBatches({ jobId, attempt, fromSequence })`. */
  readonly open: (fromSequence: number) => AsyncGenerator<FollowedItem, void, void>
  readonly unpack: (item: StoredItem, fromSequence: number) => Iterable<Event>
}

export const createEventReader = <Event extends Placed>(
  { open, unpack }: EventReaderDeps<Event>,
  options: EventBufferOptions,
): EventReader<Event> => {
  let stream: AsyncGenerator<FollowedItem, void, void> | undefined
  let startAt = options.fromSequence ?? 1
  const ended = new WeakSet<object>()
  const buffer = createEventBuffer<Event>(
    {
      unpack,
      requery: (fromSequence) => {
        startAt = fromSequence
        void stream?.return()
        stream = undefined
      },
    },
    options,
  )

  return {
    next: async () => {
      for (;;) {
        const event = buffer.next()
        if (event !== undefined) return { event }
        stream ??= open(startAt)
        const from = stream
        if (ended.has(from)) return undefined
        const { done, value } = await from.next()
        // Somebody went back meanwhile: this is of a stream that nobody reads any more.
        if (from !== stream) continue
        if (done || isEnd(value)) ended.add(from)
        else if ('item' in value) buffer.add(value.item)
        else return { marker: value.marker }
      }
    },
    rewind: (toSequence) => void buffer.rewind(toSequence),
    close: async () => {
      await stream?.return()
    },
  }
}

const isEnd = (entry: FollowedItem): boolean =>
  'marker' in entry && (entry.marker.kind === 'attemptEnded' || entry.marker.kind === 'jobEnded')
