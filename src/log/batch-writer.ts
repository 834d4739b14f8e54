import { eventTypes } from './event.ts'
import { varintSize, writeVarint } from './varint.ts'

// The JobEvent of an output batch, written around data that already stands in its place. The schema is
// api/millrace/v1/event.proto; a property holds every byte of this against the generated encoder.

/** Room for everything in front of the data: tags and numbers of the event and the batch. */
export const headerBytes = 64
/** Room for the tags behind the data, the trigger and the playback interval. */
export const trailerBytes = 32

export interface Columns {
  readonly lengths: Uint8Array
  readonly runs: readonly number[]
  readonly places: readonly number[]
  readonly trigger: number
  readonly playbackIntervalMs: number
}

/** Everything of the batch behind its data. A field that is zero or empty is left out, as protobuf does. */
export const writeColumns = (into: Buffer, from: number, columns: Columns): number => {
  let at = from
  if (columns.lengths.length > 0) {
    into[at++] = 0x22
    at = writeVarint(into, at, columns.lengths.length)
    into.set(columns.lengths, at)
    at += columns.lengths.length
  }
  at = writePacked(into, at, 0x2a, columns.runs)
  at = writePacked(into, at, 0x32, columns.places)
  at = writeNumber(into, at, 0x38, columns.trigger)
  return writeNumber(into, at, 0x40, columns.playbackIntervalMs)
}

const writePacked = (into: Buffer, from: number, tag: number, values: readonly number[]): number => {
  if (values.length === 0) return from
  let size = 0
  for (const value of values) size += varintSize(value)
  into[from] = tag
  let at = writeVarint(into, from + 1, size)
  for (const value of values) at = writeVarint(into, at, value)
  return at
}

const writeNumber = (into: Buffer, at: number, tag: number, value: number): number => {
  if (value === 0) return at
  into[at] = tag
  return writeVarint(into, at + 1, value)
}

/** Everything in front of the data, right up to it; gives the place where it begins. */
export const writeHeader = (
  into: Buffer,
  page: { sequence: number; count: number; timestamp: number; dataEnd: number; end: number },
): number => {
  const { sequence, count, timestamp, dataEnd, end } = page
  const batch = writeNumber(scratch, writeNumber(scratch, 0, 0x08, sequence), 0x10, sequence + count - 1)
  let at = batch
  if (dataEnd > headerBytes) {
    scratch[at] = 0x1a
    at = writeVarint(scratch, at + 1, dataEnd - headerBytes)
  }
  const batchHead = scratch.subarray(0, at)
  const event = writeEventHead(scratch, at, sequence, timestamp)
  scratch[event] = 0x5a
  const done = writeVarint(scratch, event + 1, batchHead.length + end - headerBytes)
  const begin = headerBytes - batchHead.length - (done - at)
  into.set(scratch.subarray(at, done), begin)
  into.set(batchHead, headerBytes - batchHead.length)
  return begin
}

/** Sequence, timestamp and type of the event. */
const writeEventHead = (into: Buffer, from: number, sequence: number, timestamp: number): number => {
  let at = writeNumber(into, from, 0x08, sequence)
  const seconds = Math.floor(timestamp / 1_000)
  const nanos = (timestamp - seconds * 1_000) * 1_000_000
  into[at] = 0x12
  const length = at + 1
  at = writeNumber(into, writeNumber(into, length + 1, 0x08, seconds), 0x10, nanos)
  into[length] = at - length - 1
  return writeNumber(into, at, 0x18, eventTypes.outputBatch)
}

/** Filled and emptied within one call. */
const scratch = Buffer.allocUnsafeSlow(2 * headerBytes)
