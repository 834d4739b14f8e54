import { crc32, deflateRawSync, inflateRawSync } from 'node:zlib'
import type { Damage } from './batch-reader.ts'
import { createCompressing } from './compressor.ts'
import { type Encoding, type EventType, encodings, type StoredItem } from './event.ts'

// Payloads: how the bytes of an event become those of a stored item, and back. Compressed where that makes them smaller. Reading
// is total: damage is an answer, never a throw, and no payload unfolds into more than a bound.

/** Compresses with raw deflate. At once, or later: large payloads on the thread pool, so that the process goes on meanwhile. */
export type Deflate = (plain: Uint8Array) => Uint8Array | Promise<Uint8Array>

/** Small ones at once: handing them to the pool would cost more than the work itself. */
export const deflatePooled: Deflate = (plain) =>
  plain.length <= atOnceMax ? deflateNow(plain) : pooled.compress(plain)

/** Everything at once, for where no thread but this one may decide the order of things. */
export const deflateNow: Deflate = (plain) => deflateRawSync(plain, { level: 1 })

const atOnceMax = 16 * 1_024

const pooled = createCompressing(1)

export interface EventHead {
  readonly sequence: number
  readonly endSequence: number
  readonly timestamp: number
  readonly type: EventType
}

/** The stored item of an encoded event. The plain bytes are free again when it is there. */
export const packItem = (head: EventHead, plain: Uint8Array, deflate: Deflate): StoredItem | Promise<StoredItem> => {
  if (plain.length < worthMin) return itemWith(head, plain, encodings.plain)
  const smaller = (packed: Uint8Array): StoredItem =>
    packed.length < plain.length ? itemWith(head, packed, encodings.deflate) : itemWith(head, plain, encodings.plain)
  const packed = deflate(plain)
  // A compressor that fails costs space, not output.
  return packed instanceof Promise
    ? packed.then(smaller, () => itemWith(head, plain, encodings.plain))
    : smaller(packed)
}

/** Below this there is nothing to gain. */
const worthMin = 200

const itemWith = (head: EventHead, bytes: Uint8Array, encoding: Encoding): StoredItem => {
  // A copy of the right size: the bytes may stand in a buffer that is used again, or in one that is much larger.
  const payload = new Uint8Array(bytes)
  return { ...head, payload, encoding, crc: crc32(payload) }
}

/** The encoded event of an item. */
export const plainOf = (item: StoredItem): Uint8Array | Damage => {
  if (crc32(item.payload) !== item.crc) return { damage: 'the checksum does not fit' }
  if (item.encoding === encodings.plain) return item.payload
  if (item.encoding !== encodings.deflate) return { damage: `encoding ${String(item.encoding)} is not known` }
  try {
    return inflateRawSync(item.payload, { maxOutputLength: plainBytesMax })
  } catch {
    return { damage: 'the payload cannot be unfolded' }
  }
}

/** More than any item unfolds to, and little enough to be no danger. */
const plainBytesMax = 1_024 * 1_024
