// Keys as byte strings: JavaScript strings in which each character is one byte. They sort as LMDB sorts, cost nothing to
// compare or to use in a Map, and are copied into the map file in one call.
//
// K1  Different keys have different byte strings, and byte order is the order of the sort values.
// K2  A text that is not the last part ends with 00 01; a 00 inside it becomes 00 FF, so no text is a prefix of another.
// K3  No key begins with the byte FF (no text does), so `sort value + FF` is above all keys that follow that sort value.

import { assert } from '../../kernel/assert.ts'
import type { Key, Row, SortKey, TableSchema } from '../port.ts'

/** The longest key LMDB takes with pages of 4 KiB. */
export const keyBytesMax = 1_978

/** Where a walk over a whole database starts: no key is empty. */
export const lowestKey = '\x00'

const end = '\x00\x01'
const pastEnd = '\x00\x02'

export const encodeKey = (schema: TableSchema, key: Key): string => {
  const { sort } = schema
  if (!sort) return key[0] === '' ? '\x00' : plainText(key[0])
  const value = key[1]
  assert(value !== undefined, 'a key without its sort value')
  return partitionPrefix(key[0]) + encodeLast(sort, value)
}

export const decodeKey = (schema: TableSchema, bytes: string): Key => {
  if (!schema.sort) return [bytes === '\x00' ? '' : decodeText(bytes)]
  const at = bytes.indexOf(end)
  const rest = bytes.slice(at + end.length)
  const sort = schema.sort.type === 'number' ? decodeNumber(rest) : rest === '\x00' ? '' : decodeText(rest)
  return [decodeText(bytes.slice(0, at)), sort]
}

/** What all keys of one partition begin with. */
const partitionPrefix = (partition: string): string => escaped(partition) + end

/** The place of a row in an index, or undefined if the row is not in it. `writePlace` writes the same bytes. */
export const encodePlace = (
  index: TableSchema['indexes'][string],
  row: Row | undefined,
  key: string,
): string | undefined => {
  const partition = row?.[index.partition]
  const sort = row?.[index.sort.attribute]
  if (partition === undefined || sort === undefined) return undefined
  return `${partitionPrefix(String(partition))}${encodeSort(index.sort, sort as number | string)}${key}`
}

/** A place that is written into a key buffer part by part: joining the parts first would cost more than writing them. */
export interface Place {
  partition: string
  sort: number | string
  key: string
}

/** Fills `place` with where the row stands in an index; false if the row is not in it. */
export const findPlace = (index: TableSchema['indexes'][string], row: Row | undefined, place: Place): boolean => {
  const partition = row?.[index.partition]
  const sort = row?.[index.sort.attribute]
  if (partition === undefined || sort === undefined) return false
  place.partition = escaped(String(partition))
  place.sort = index.sort.type === 'number' ? (sort as number) : escaped(sort as string)
  return true
}

export const writePlace = (place: Place, target: Uint8Array, start: number): number => {
  const { sort } = place
  let at = writeEnd(target, writeBytes(place.partition, target, start))
  if (typeof sort === 'number') {
    splitNumber(sort)
    writeWord(target, at, high)
    writeWord(target, at + 4, low)
    at += 8
  } else at = writeEnd(target, writeBytes(sort, target, at))
  return writeBytes(place.key, target, at)
}

/** Node's buffers write bytes under this name too, without the checks of `write`. */
interface Latin1Buffer extends Uint8Array {
  latin1Write(bytes: string, at: number): number
}

/** One call and no loop: the library hands over buffers of several shapes, and storing byte by byte into those is slow. */
export const writeBytes = (bytes: string, target: Uint8Array, at: number): number =>
  at + (target as Latin1Buffer).latin1Write(bytes, at)

const writeEnd = (target: Uint8Array, at: number): number => {
  target[at] = 0
  target[at + 1] = 1
  return at + 2
}

const writeWord = (target: Uint8Array, at: number, word: number): void => {
  target[at] = word >>> 24
  target[at + 1] = word >>> 16
  target[at + 2] = word >>> 8
  target[at + 3] = word
}

/** The bytes of the row's key at the end of its place in an index. */
export const keyOfPlace = (sort: SortKey, place: string): string => {
  const at = place.indexOf(end) + end.length
  return place.slice(sort.type === 'number' ? at + 8 : place.indexOf(end, at) + end.length)
}

/** The place of a row in its table's order of expiry. */
export const encodeExpiry = (second: number, key: string): string => encodeNumber(second) + key

export const decodeExpiry = (bytes: string): { readonly second: number; readonly key: string } => ({
  second: decodeNumber(bytes),
  key: bytes.slice(8),
})

export interface Bounds {
  /** Included. */
  readonly low: string
  /** Not included. */
  readonly high: string
}

export const tableBounds = (sort: SortKey | undefined, partition: string, from?: Sort, to?: Sort): Bounds => {
  assert(sort, 'a range over a table without sort values')
  const prefix = partitionPrefix(partition)
  return {
    low: from === undefined ? prefix : prefix + encodeLast(sort, from),
    // The sort value is the last part here: 00 is the smallest thing that can follow it.
    high: to === undefined ? escaped(partition) + pastEnd : `${prefix}${encodeLast(sort, to)}\x00`,
  }
}

export const indexBounds = (sort: SortKey, partition: string, from?: Sort, to?: Sort): Bounds => {
  const prefix = partitionPrefix(partition)
  return {
    low: from === undefined ? prefix : prefix + encodeSort(sort, from),
    high: to === undefined ? escaped(partition) + pastEnd : `${prefix}${encodeSort(sort, to)}\xff`,
  }
}

type Sort = number | string

const encodeSort = (sort: SortKey, value: Sort): string =>
  sort.type === 'number' ? encodeNumber(value as number) : escaped(value as string) + end

const encodeLast = (sort: SortKey, value: Sort): string =>
  sort.type === 'number' ? encodeNumber(value as number) : value === '' ? '\x00' : plainText(value as string)

// biome-ignore lint/suspicious/noControlCharactersInRegex: the question is exactly whether there are any.
const isPlain = /^[\x01-\x7f]*$/
const utf8 = (text: string): string => Buffer.from(text, 'utf8').toString('latin1')
const escaped = (text: string): string => (isPlain.test(text) ? text : utf8(text).replaceAll('\x00', '\x00\xff'))
/** As `escaped`: a last part needs no end, but it needs a form that an empty text (00) cannot be mistaken for. */
const plainText = escaped
const decodeText = (bytes: string): string =>
  isPlain.test(bytes) ? bytes : Buffer.from(bytes.replaceAll('\x00\xff', '\x00'), 'latin1').toString('utf8')

const float = new Float64Array(1)
const words = new Uint32Array(float.buffer)
/** Which of the two words holds the sign, by the byte order of this machine. */
const [lowWord, highWord] = new Uint8Array(Uint32Array.of(1).buffer)[0] === 1 ? [0, 1] : [1, 0]

/** The two halves of the number that was split last. */
let high = 0
let low = 0

/** Bits that sort as the numbers do: the sign bit turned over, and for negative numbers all the others too. */
const splitNumber = (value: number): void => {
  assert(typeof value === 'number' && !Number.isNaN(value), 'not a number, so it has no place in an order')
  // Adding 0 makes -0 the 0 that it equals.
  float[0] = value + 0
  const isNegative = ((words[highWord] as number) & signBit) !== 0
  high = isNegative ? ~(words[highWord] as number) : (words[highWord] as number) | signBit
  low = isNegative ? ~(words[lowWord] as number) : (words[lowWord] as number)
}

/** Eight bytes that sort as the numbers do. */
export const encodeNumber = (value: number): string => {
  splitNumber(value)
  return String.fromCharCode(
    high >>> 24,
    (high >>> 16) & 0xff,
    (high >>> 8) & 0xff,
    high & 0xff,
    low >>> 24,
    (low >>> 16) & 0xff,
    (low >>> 8) & 0xff,
    low & 0xff,
  )
}

const signBit = 0x80000000

const decodeNumber = (bytes: string): number => {
  const high = wordAt(bytes, 0)
  const low = wordAt(bytes, 4)
  words[highWord] = high & signBit ? high & ~signBit : ~high
  words[lowWord] = high & signBit ? low : ~low
  return float[0] as number
}

const wordAt = (bytes: string, at: number): number =>
  (bytes.charCodeAt(at) << 24) |
  (bytes.charCodeAt(at + 1) << 16) |
  (bytes.charCodeAt(at + 2) << 8) |
  bytes.charCodeAt(at + 3)
