import { fromBinary } from '@bufbuild/protobuf'
import { type JobEvent, JobEventSchema } from '../../api/gen/millrace/v1/event_pb.js'
import { type Damage, type OutputColumns, readOutputBatch } from './batch-reader.ts'
import { type EventType, eventTypes, type StoredItem, type StreamName } from './event.ts'
import { plainOf } from './payload.ts'

// Stored items and what is in them. For everybody who reads: server, client and command line. Needs zlib and Buffer of Node.
// Nothing here throws over bytes: damage is an answer.

export type { Damage, OutputColumns } from './batch-reader.ts'

/** One event as a reader sees it. */
export interface LogEvent {
  readonly sequence: number
  readonly timestamp: number
  /** An output out of a batch is an OUTPUT. */
  readonly type: EventType
  /** Of an OUTPUT. A view into the item: copy it to keep it. */
  readonly output?: Uint8Array
  readonly stream?: StreamName
  /** The line goes on in the next output of the same stream. */
  readonly continued?: boolean
  /** What any other event says. */
  readonly data?: JobEvent['data']
}

/** How many events an item holds, without a look inside. */
export const countOf = (item: StoredItem): number => item.endSequence - item.sequence + 1

/** The columns of an output batch. */
export const columnsOf = (item: StoredItem): OutputColumns | Damage => {
  const plain = plainOf(item)
  if ('damage' in plain) return plain
  const columns = readOutputBatch(plain)
  if ('damage' in columns) return columns
  const fits = columns.sequence === item.sequence && columns.count === countOf(item)
  return fits ? columns : { damage: 'the batch is not the one that the item promises' }
}

/** The events of an item from a sequence on, made one by one as they are asked for. */
export const unpackItem = (item: StoredItem, fromSequence = 0): { readonly events: Iterable<LogEvent> } | Damage => {
  if (item.type === eventTypes.outputBatch) {
    const columns = columnsOf(item)
    return 'damage' in columns ? columns : { events: outputsOf(columns, fromSequence) }
  }
  const event = singleOf(item)
  if ('damage' in event) return event
  return { events: item.sequence >= fromSequence ? [event] : [] }
}

/**
 * Calls back for each output from a sequence on, with where it stands in the data, and makes nothing per output. Gives the damage,
 * if there is any; then nothing was called. An item that is no output batch has no outputs unless it is a single one.
 */
export const eachOutput = (item: StoredItem, visit: VisitOutput, fromSequence = 0): Damage | undefined => {
  if (item.type === eventTypes.output) return eachSingle(item, visit, fromSequence)
  if (item.type !== eventTypes.outputBatch) return undefined
  const columns = columnsOf(item)
  if ('damage' in columns) return columns
  visitOutputs(columns, visit, fromSequence)
  return undefined
}

/** Also: stream 1 is stdout and 2 is stderr, as in event.ts; `timestamp` is wall time. */
export type VisitOutput = (
  stream: number,
  data: Uint8Array,
  start: number,
  end: number,
  continued: boolean,
  timestamp: number,
) => void

const visitOutputs = (columns: OutputColumns, visit: VisitOutput, fromSequence: number): void => {
  const { sequence, data, ends, runs, continued } = columns
  let place = 0
  let start = 0
  let at = columns.timestamp
  let nextContinued = 0
  for (let run = 0; run < runs.length; run += 3) {
    const runEnd = place + (runs[run] as number)
    const stream = runs[run + 1] as number
    at += runs[run + 2] as number
    for (; place < runEnd; place++) {
      const end = ends[place] as number
      const isContinued = continued[nextContinued] === place
      if (isContinued) nextContinued += 1
      if (sequence + place >= fromSequence) visit(stream, data, start, end, isContinued, at)
      start = end
    }
  }
}

function* outputsOf(columns: OutputColumns, fromSequence: number): Generator<LogEvent, void, void> {
  const { sequence, data, ends, runs, continued } = columns
  let place = 0
  let at = columns.timestamp
  let nextContinued = 0
  for (let run = 0; run < runs.length; run += 3) {
    const runEnd = place + (runs[run] as number)
    const stream = nameOf(runs[run + 1] as number)
    at += runs[run + 2] as number
    for (; place < runEnd; place++) {
      const isContinued = continued[nextContinued] === place
      if (isContinued) nextContinued += 1
      if (sequence + place < fromSequence) continue
      const output = data.subarray(place === 0 ? 0 : ends[place - 1], ends[place])
      yield {
        sequence: sequence + place,
        timestamp: at,
        type: eventTypes.output,
        output,
        stream,
        continued: isContinued,
      }
    }
  }
}

const nameOf = (stream: number): StreamName => (stream === 2 ? 'stderr' : 'stdout')

const singleOf = (item: StoredItem): LogEvent | Damage => {
  const plain = plainOf(item)
  if ('damage' in plain) return plain
  const event = decode(plain)
  if (event === undefined) return { damage: 'the event cannot be read' }
  if (event.sequence !== BigInt(item.sequence) || (event.type as number) !== item.type || countOf(item) !== 1) {
    return { damage: 'the event is not the one that the item promises' }
  }
  const head = { sequence: item.sequence, timestamp: item.timestamp, type: item.type }
  if (event.data.case !== 'output') return { ...head, data: event.data }
  const { output, stream, continued } = event.data.value
  return { ...head, output, stream: nameOf(stream), continued }
}

const decode = (plain: Uint8Array): JobEvent | undefined => {
  try {
    return fromBinary(JobEventSchema, plain)
  } catch {
    return undefined
  }
}

const eachSingle = (item: StoredItem, visit: VisitOutput, fromSequence: number): Damage | undefined => {
  const event = singleOf(item)
  if ('damage' in event) return event
  if (event.output === undefined || item.sequence < fromSequence) return undefined
  visit(
    event.stream === 'stderr' ? 2 : 1,
    event.output,
    0,
    event.output.length,
    event.continued === true,
    item.timestamp,
  )
  return undefined
}
