import type { FollowedChunk } from '../../client/unpack.ts'
import { ofEvent, ofMarker } from '../jobs-of-client.ts'
import type { LogEvent } from '../log-event.ts'

/** Chunks in the words of the commands. */
export async function* chunkEvents(followed: AsyncIterable<FollowedChunk>): AsyncGenerator<LogEvent, void, void> {
  for await (const entry of followed) {
    const event = eventOf(entry)
    if (event !== undefined) yield event
  }
}

const eventOf = (entry: FollowedChunk): LogEvent | undefined => {
  if ('marker' in entry) return ofMarker(entry.attempt, entry.marker)
  if ('event' in entry) return ofEvent(entry.attempt, entry.event)
  const { sequence, endSequence, timestamp, stream, bytes } = entry.chunk
  return { attempt: entry.attempt, kind: 'output', sequence, endSequence, timestamp, stream, bytes }
}
