// Records: a row as bytes. Four bytes of CRC-32, then MessagePack. Each record stands alone: none needs a dictionary kept
// elsewhere, so one that is damaged takes no other with it.
//
// The encoder is written by hand because encoding is most of what a commit costs; msgpackr reads what it writes, and a
// property test holds the two together.

import { crc32 } from 'node:zlib'
import { Unpackr } from 'msgpackr'
import { assert } from '../../kernel/assert.ts'
import type { Row, Value } from '../port.ts'

const crcBytes = 4
const chunkBytes = 1024 * 1024

/**
 * Where the records of one transaction are laid out. LMDB reads them from another thread until the commit has ended;
 * `reset` says that it has.
 */
export interface RecordArena {
  /** Says in `span` where the record lies. */
  encode(row: Row, plan: RecordPlan, span: Span): void
  reset(): void
}

/** Where a record lies. */
export interface Span {
  chunk: Chunk | undefined
  start: number
  end: number
}

/** The names of the last row that was encoded, ready to be written: the next row of the table most likely has the same. */
export interface RecordPlan {
  readonly names: string[]
  readonly encoded: EncodedName[]
}

export const createRecordPlan = (): RecordPlan => ({ names: [], encoded: [] })

interface EncodedName {
  readonly length: number
  /** Filled up to whole words: what is written too much is overwritten by the value. */
  readonly words: Int32Array
}

/** Node's buffers write UTF-8 under this name too, without the checks of `write`, which cost as much again. */
interface Utf8Buffer extends Buffer {
  utf8Write(text: string, at: number): number
}

/** The library takes the part from `start` to `end` of such a buffer, so that a record needs no buffer of its own. */
interface ChunkBytes extends Utf8Buffer {
  start: number
  end: number
}

export interface Chunk {
  readonly bytes: ChunkBytes
  readonly view: DataView
}

/** The record as the library takes it. Good until the next one of its chunk is asked for. */
export const recordIn = ({ chunk, start, end }: Span): Buffer => {
  const { bytes } = chunk as Chunk
  bytes.start = start
  bytes.end = end
  return bytes
}

/** The record in a buffer of its own. */
export const copyOf = ({ chunk, start, end }: Span): Buffer => Buffer.from((chunk as Chunk).bytes.subarray(start, end))

/** Chunks that stay with an arena; the others are let go with the transaction that needed them. */
const chunksKept = 8

export const createRecordArena = (): RecordArena => {
  const chunks = [createChunk(chunkBytes)]
  let at = 0
  let used = 0
  /** Goes on to a chunk in which the row has room. */
  const turnOver = (row: Row): Chunk => {
    const wanted = recordBytesAtMost(row) + overhead
    at += 1
    used = 0
    const waiting = chunks[at]
    if (waiting && waiting.bytes.length >= wanted) return waiting
    const fresh = createChunk(Math.max(chunkBytes, wanted))
    chunks.splice(at, 0, fresh)
    return fresh
  }
  return {
    encode: (row, plan, span) => {
      let chunk = chunks[at] as Chunk
      let end = writeRow(chunk, row, used + crcBytes, plan)
      if (end === noRoom) {
        chunk = turnOver(row)
        end = writeRow(chunk, row, crcBytes, plan)
        assert(end !== noRoom, 'a row was larger than measured')
      }
      const start = used
      used = end
      const payload = new Uint8Array(chunk.bytes.buffer, start + crcBytes, end - start - crcBytes)
      chunk.view.setUint32(start, crc32(payload))
      span.chunk = chunk
      span.start = start
      span.end = end
    },
    reset: () => {
      chunks.length = Math.min(chunks.length, chunksKept)
      at = 0
      used = 0
    },
  }
}

const createChunk = (length: number): Chunk => {
  const bytes = Object.assign(Buffer.allocUnsafeSlow(length), { start: 0, end: 0 }) as ChunkBytes
  return { bytes, view: new DataView(bytes.buffer) }
}

const noRoom = -1
/** The most that a name and its value need besides their bytes: two lengths, and a word that was not filled. */
const overhead = 16

/** No record of the row is larger; exact measuring would cost as much as encoding. */
const recordBytesAtMost = (row: Row): number => {
  let bytes = crcBytes + headBytes
  for (const name in row) {
    const value = row[name] as Value
    bytes += 3 * name.length + overhead
    if (typeof value === 'string') bytes += 3 * value.length
    else if (typeof value === 'object') bytes += value.length
  }
  return bytes
}

const lengthOf = (value: Value): number => (typeof value === 'string' || typeof value === 'object' ? value.length : 0)

/** A map of up to 65,535 attributes. */
const headBytes = 3

/** Where the row ends, or `noRoom`. */
const writeRow = (chunk: Chunk, row: Row, start: number, plan: RecordPlan): number => {
  const { bytes, view } = chunk
  const room = bytes.length - overhead
  let at = start + headBytes
  let count = 0
  for (const name in row) {
    const value = row[name] as Value
    if (plan.names[count] !== name) follow(plan, count, name)
    const { length, words } = plan.encoded[count] as EncodedName
    if (at + length + 3 * lengthOf(value) > room) return noRoom
    for (let index = 0; index < words.length; index++) view.setInt32(at + 4 * index, words[index] as number)
    at = writeValue(chunk, value, at + length)
    count += 1
  }
  if (start + headBytes > bytes.length) return noRoom
  bytes[start] = 0xde
  bytes[start + 1] = count >>> 8
  bytes[start + 2] = count
  return at
}

const writeValue = (chunk: Chunk, value: Value, at: number): number => {
  if (typeof value === 'string') return writeText(chunk.bytes, value, at)
  if (typeof value === 'number') return writeNumber(chunk, value, at)
  if (typeof value === 'boolean') {
    chunk.bytes[at] = value ? 0xc3 : 0xc2
    return at + 1
  }
  assert(value instanceof Uint8Array, 'a value of a type that tables do not have')
  chunk.bytes[at] = 0xc6
  chunk.view.setUint32(at + 1, value.length)
  chunk.bytes.set(value, at + 5)
  return at + 5 + value.length
}

const writeNumber = ({ bytes, view }: Chunk, value: number, at: number): number => {
  // Whole numbers of 32 bits have a short form; -0 is none of them and keeps its sign.
  if (value >>> 0 === value && !Object.is(value, -0)) {
    if (value < 0x80) {
      bytes[at] = value
      return at + 1
    }
    bytes[at] = 0xce
    view.setUint32(at + 1, value)
    return at + 5
  }
  bytes[at] = 0xcb
  view.setFloat64(at + 1, value)
  return at + 9
}

/** Up to here copying by hand beats a call into the runtime. */
const loopMax = 16
const shortMax = 31
const mediumMax = 255

const writeText = (bytes: Utf8Buffer, text: string, at: number): number => {
  const { length } = text
  if (length <= loopMax) {
    let index = 0
    for (; index < length; index++) {
      const code = text.charCodeAt(index)
      if (code > 0x7f) break
      bytes[at + 1 + index] = code
    }
    if (index === length) {
      bytes[at] = 0xa0 | length
      return at + 1 + length
    }
  }
  // Most text is ASCII: guess the head by the number of characters, and write again if there are more bytes than that.
  const head = length <= shortMax ? 1 : length <= mediumMax ? 2 : 5
  const written = bytes.utf8Write(text, at + head)
  if (head === 1 && written <= shortMax) bytes[at] = 0xa0 | written
  else if (head === 2 && written <= mediumMax) {
    bytes[at] = 0xd9
    bytes[at + 1] = written
  } else return writeLongText(bytes, text, at)
  return at + head + written
}

const writeLongText = (bytes: Utf8Buffer, text: string, at: number): number => {
  const written = bytes.utf8Write(text, at + 5)
  bytes[at] = 0xdb
  bytes.writeUInt32BE(written, at + 1)
  return at + 5 + written
}

const namesMax = 4_096
const names = new Map<string, EncodedName>()

/** From this attribute on the row is another than the plan says. */
const follow = (plan: RecordPlan, position: number, name: string): void => {
  plan.names[position] = name
  plan.encoded[position] = encodedName(name)
}

/** Attribute names are few and come again with every row. */
const encodedName = (name: string): EncodedName => {
  const known = names.get(name)
  if (known) return known
  const bytes = Buffer.alloc(8 + 3 * name.length) as Utf8Buffer
  const length = writeText(bytes, name, 0)
  const words = Int32Array.from({ length: Math.ceil(length / 4) }, (_, word) => bytes.readInt32BE(4 * word))
  const encoded = { length, words }
  if (names.size < namesMax) names.set(name, encoded)
  return encoded
}

export type Decoded = { readonly row: Row } | { readonly damage: string }

const unpackr = new Unpackr({ useRecords: false, mapsAsObjects: true, copyBuffers: true })

/** The row of a record, or what is wrong with it. The bytes may be overwritten afterwards. */
export const decodeRecord = (record: Buffer, length: number): Decoded => {
  if (length <= crcBytes) return { damage: `a record of ${length} bytes` }
  const payload = Buffer.from(record.buffer, record.byteOffset + crcBytes, length - crcBytes)
  if (crc32(payload) !== record.readUInt32BE(0)) return { damage: 'its checksum does not match' }
  return { row: unpackr.unpack(payload) as Row }
}
