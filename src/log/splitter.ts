// The splitter: chunks as they were read → lines with their line breaks, per stream. Bytes are exact: what goes in comes out, in
// order, in outputs that are whole lines wherever that is possible.
//
// L1  An unfinished line is held back until its line break comes, until it reaches the cap, or until it is asked for.
// L2  Each output is at most `capBytes` long; one that does not end its line is marked as continued.

/** Where outputs go. */
export interface OutputSink {
  /** Whole lines of the chunk from `start` on, as many as fit; gives the place behind them. Called again until it stands still. */
  addLines(stream: number, at: number, chunk: Buffer, start: number): number
  /** One output; there is always room for it. */
  add(stream: number, at: number, bytes: Uint8Array, start: number, end: number, continued: boolean): void
}

export interface Splitter {
  take(stream: number, at: number, chunk: Buffer): void
  /** Hands out what is held back. `ended`: nothing follows, so the lines do not go on. */
  release(ended: boolean): void
  /** Whether anything is held back. */
  holds(): boolean
  bytes(): number
}

const newline = 10

export const createSplitter = (sink: OutputSink, capBytes: number): Splitter => {
  const tails = new Map<number, Tail>()

  const tailOf = (stream: number): Tail => {
    const known = tails.get(stream)
    if (known !== undefined) return known
    const fresh: Tail = { buffer: Buffer.alloc(0), length: 0, at: 0 }
    tails.set(stream, fresh)
    return fresh
  }

  const emit = (stream: number, tail: Tail, at: number, continued: boolean): void => {
    const { length } = tail
    // Empty before it is handed on: the sink may ask what is held.
    tail.length = 0
    sink.add(stream, at, tail.buffer, 0, length, continued)
  }

  /** Puts bytes behind what is held back, handing out a part whenever the cap is reached. */
  const hold = (stream: number, tail: Tail, at: number, chunk: Buffer, from: number, to: number): void => {
    let start = from
    tail.at = at
    while (start < to) {
      const end = Math.min(to, start + capBytes - tail.length)
      makeRoom(tail, end - start, capBytes)
      chunk.copy(tail.buffer, tail.length, start, end)
      tail.length += end - start
      start = end
      if (tail.length === capBytes) {
        // A line that ends just here is whole.
        const goesOn = tail.buffer[capBytes - 1] !== newline
        emit(stream, tail, at, goesOn)
      }
    }
  }

  /** Finishes the line that is held back, as far as the chunk goes; gives the place behind it. */
  const finishLine = (stream: number, tail: Tail, at: number, chunk: Buffer): number => {
    const found = chunk.indexOf(newline)
    const end = found < 0 ? chunk.length : found + 1
    hold(stream, tail, at, chunk, 0, end)
    if (found >= 0 && tail.length > 0) emit(stream, tail, at, false)
    return end
  }

  const split = (stream: number, at: number, chunk: Buffer, from: number): void => {
    let start = from
    while (start < chunk.length) {
      const taken = sink.addLines(stream, at, chunk, start)
      if (taken > start) start = taken
      else start = takeOdd(stream, at, chunk, start)
    }
  }

  /** What is no line that fits: the beginning of one that is longer than the cap, or the unfinished rest of the chunk. */
  const takeOdd = (stream: number, at: number, chunk: Buffer, start: number): number => {
    const found = chunk.indexOf(newline, start)
    const end = found < 0 ? chunk.length : found + 1
    const length = end - start
    if (length > capBytes) {
      sink.add(stream, at, chunk, start, start + capBytes, true)
      return start + capBytes
    }
    if (found < 0) hold(stream, tailOf(stream), at, chunk, start, end)
    else sink.add(stream, at, chunk, start, end, false)
    return end
  }

  return {
    take: (stream, at, chunk) => {
      const tail = tails.get(stream)
      const start = tail !== undefined && tail.length > 0 ? finishLine(stream, tail, at, chunk) : 0
      split(stream, at, chunk, start)
    },
    release: (ended) => {
      for (const [stream, tail] of tails) if (tail.length > 0) emit(stream, tail, tail.at, !ended)
    },
    holds: () => {
      for (const tail of tails.values()) if (tail.length > 0) return true
      return false
    },
    bytes: () => {
      let bytes = 0
      for (const tail of tails.values()) bytes += tail.length
      return bytes
    },
  }
}

/** An unfinished line. */
interface Tail {
  buffer: Buffer
  length: number
  /** When its last bytes were read. */
  at: number
}

const makeRoom = (tail: Tail, more: number, capBytes: number): void => {
  const needed = tail.length + more
  if (needed <= tail.buffer.length) return
  const larger = Buffer.allocUnsafe(Math.min(capBytes, Math.max(needed, 2 * tail.buffer.length, 256)))
  tail.buffer.copy(larger, 0, 0, tail.length)
  tail.buffer = larger
}
