import { createVarintReader, type VarintReader } from './varint.ts'

// The other way round: a JobEvent with an output batch, read into columns. Total: whatever the bytes are, the answer is columns
// that agree with each other, or a sentence about what is wrong. Fields that are not known are passed over.

/** Consecutive outputs in columns. */
export interface OutputColumns {
  /** Of the first output. */
  readonly sequence: number
  readonly count: number
  /** Wall time that the first run counts from. */
  readonly timestamp: number
  readonly data: Uint8Array
  /** Where each output ends in the data. */
  readonly ends: Uint32Array
  /** Three numbers for each run: how many outputs, their stream, and the milliseconds since the run before. */
  readonly runs: Uint32Array
  /** The places of outputs whose line goes on, rising. */
  readonly continued: Uint32Array
  readonly trigger: number
  readonly playbackIntervalMs: number
}

export interface Damage {
  readonly damage: string
}

export const readOutputBatch = (payload: Uint8Array): OutputColumns | Damage => {
  const event: Fields = { numbers: {}, spans: {} }
  if (!readFields(payload, 0, payload.length, event)) return { damage: 'the event is cut short' }
  const span = event.spans[11]
  if (span === undefined) return { damage: 'the event has no output batch' }
  const batch: Fields = { numbers: {}, spans: {} }
  if (!readFields(payload, span[0], span[1], batch)) return { damage: 'the output batch is cut short' }
  return columnsOf(payload, batch, timestampOf(payload, event.spans[2]))
}

/** What was found of a message: numbers, and the ends of what has a length. The last of several counts, as in protobuf. */
interface Fields {
  readonly numbers: Record<number, number>
  readonly spans: Record<number, readonly [from: number, to: number]>
}

const readFields = (bytes: Uint8Array, from: number, to: number, fields: Fields): boolean => {
  const reader = createVarintReader(bytes, from, to)
  while (!reader.isAtEnd()) {
    const tag = reader.next()
    const field = Math.floor(tag / 8)
    if (!readField(reader, field, tag % 8, fields)) return false
  }
  return !reader.isBad()
}

const readField = (reader: VarintReader, field: number, wireType: number, fields: Fields): boolean => {
  switch (wireType) {
    case 0:
      fields.numbers[field] = reader.next()
      break
    case 1:
      reader.skip(8)
      break
    case 2: {
      const length = reader.next()
      const from = reader.place()
      reader.skip(length)
      fields.spans[field] = [from, from + length]
      break
    }
    case 5:
      reader.skip(4)
      break
    default:
      return false
  }
  return !reader.isBad()
}

const timestampOf = (payload: Uint8Array, span: readonly [number, number] | undefined): number => {
  const fields: Fields = { numbers: {}, spans: {} }
  if (span === undefined || !readFields(payload, span[0], span[1], fields)) return 0
  return (fields.numbers[1] ?? 0) * 1_000 + Math.floor((fields.numbers[2] ?? 0) / 1_000_000)
}

const columnsOf = (payload: Uint8Array, { numbers, spans }: Fields, timestamp: number): OutputColumns | Damage => {
  const sequence = numbers[1] ?? 0
  const count = (numbers[2] ?? 0) - sequence + 1
  const lengths = spans[4] ?? nothing
  // Each length takes a byte at least, so a count that was made up asks for no memory.
  if (sequence < 1 || count < 1 || count > lengths[1] - lengths[0]) return { damage: 'the range is no range' }
  const [from, to] = spans[3] ?? nothing
  const ends = readEnds(payload, lengths, count)
  if (ends?.[count - 1] !== to - from) return { damage: 'the lengths do not add up to the data' }
  const runs = readNumbers(payload, spans[5] ?? nothing)
  if (runs === undefined || !areRunsOver(runs, count)) return { damage: 'the runs do not add up to the outputs' }
  const continued = readNumbers(payload, spans[6] ?? nothing)
  if (continued === undefined || !areRising(continued, count)) return { damage: 'a place is out of the batch' }
  return {
    sequence,
    count,
    timestamp,
    data: payload.subarray(from, to),
    ends,
    runs,
    continued,
    trigger: numbers[7] ?? 0,
    playbackIntervalMs: numbers[8] ?? 0,
  }
}

const nothing = [0, 0] as const

const readEnds = (bytes: Uint8Array, [from, to]: readonly [number, number], count: number): Uint32Array | undefined => {
  const ends = new Uint32Array(count)
  let at = from
  let end = 0
  for (let place = 0; place < count; place++) {
    if (at >= to) return undefined
    const byte = bytes[at] as number
    if (byte < 0x80) {
      at += 1
      end += byte
    } else {
      const reader = createVarintReader(bytes, at, to)
      end += reader.next()
      if (reader.isBad()) return undefined
      at = reader.place()
    }
    if (end > bytes.length) return undefined
    ends[place] = end
  }
  return at === to ? ends : undefined
}

const readNumbers = (bytes: Uint8Array, [from, to]: readonly [number, number]): Uint32Array | undefined => {
  const reader = createVarintReader(bytes, from, to)
  const values: number[] = []
  while (!reader.isAtEnd()) values.push(reader.next())
  return reader.isBad() || values.some((value) => value > 0xffffffff) ? undefined : Uint32Array.from(values)
}

const areRunsOver = (runs: Uint32Array, count: number): boolean => {
  if (runs.length % 3 !== 0) return false
  let outputs = 0
  for (let run = 0; run < runs.length; run += 3) outputs += runs[run] as number
  return outputs === count
}

const areRising = (places: Uint32Array, count: number): boolean =>
  places.every((place, index) => place < count && (index === 0 || place > (places[index - 1] as number)))
