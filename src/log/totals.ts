import { createHash, type Hash } from 'node:crypto'
import type { StreamTotal } from './single-event.ts'

/** What each stream comes to, over the bytes as stored, so that a reader of the whole can say that it has the whole. */
export interface Totals {
  count(stream: number, bytes: Uint8Array): void
  countOutputs(stream: number, outputs: number): void
  /** Of the streams that said something. Ends the counting. */
  sum(): readonly StreamTotal[]
}

export const createTotals = (): Totals => {
  const streams = new Map<number, { bytes: number; outputs: number; hash: Hash }>()

  const of = (stream: number) => {
    const known = streams.get(stream)
    if (known !== undefined) return known
    const fresh = { bytes: 0, outputs: 0, hash: createHash('sha256') }
    streams.set(stream, fresh)
    return fresh
  }

  return {
    count: (stream, bytes) => {
      const total = of(stream)
      total.bytes += bytes.length
      total.hash.update(bytes)
    },
    countOutputs: (stream, outputs) => {
      of(stream).outputs += outputs
    },
    sum: () =>
      [...streams]
        .sort(([a], [b]) => a - b)
        .map(([stream, { bytes, outputs, hash }]) => ({ stream, bytes, outputs, sha256: hash.digest() })),
  }
}
