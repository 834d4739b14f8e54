import { create } from '@bufbuild/protobuf'
import { timestampFromMs } from '@bufbuild/protobuf/wkt'
import { EventType, type JobEvent, JobEventSchema, Stream } from '../../api/gen/millrace/v1/event_pb.js'
import type { StoredItem } from '../log/event.ts'
import { type LogEvent, unpackItem } from '../log/stored-batch.ts'

/** The events of an item one by one, as they travel. What cannot be read is said in its place (E22). */
export function* unpackToWire(item: StoredItem, fromSequence: number): Generator<JobEvent, void, void> {
  const unpacked = unpackItem(item, fromSequence)
  if ('damage' in unpacked) yield damagedOf(item, unpacked.damage)
  else for (const event of unpacked.events) yield wireOf(event)
}

const wireOf = ({ sequence, timestamp, type, output, stream, continued = false, data }: LogEvent): JobEvent =>
  create(JobEventSchema, {
    sequence: BigInt(sequence),
    timestamp: timestampFromMs(timestamp),
    type: type as number,
    data: output
      ? {
          case: 'output',
          value: { output, stream: stream === 'stderr' ? Stream.STDERR : Stream.STDOUT, continued },
        }
      : (data ?? { case: undefined }),
  })

const damagedOf = ({ sequence, endSequence, timestamp }: StoredItem, reason: string): JobEvent =>
  create(JobEventSchema, {
    timestamp: timestampFromMs(timestamp),
    type: EventType.DAMAGED,
    data: {
      case: 'damaged',
      value: { fromSequence: BigInt(sequence), toSequence: BigInt(endSequence), reason },
    },
  })
