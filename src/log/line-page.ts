import { headerBytes, trailerBytes, writeColumns, writeHeader } from './batch-writer.ts'
import { varintSize, writeVarint } from './varint.ts'

// A line page: outputs on their way into one stored item, in the columns of the batch message, so that no line ever becomes an
// object. The lines of a chunk that belong to one page are copied at once, and what is encoded in the end stands in the same
// buffer: the header is written in front of the data, the columns behind it.
//
// P1  What a page encodes to never exceeds `bytesMax`: room is counted before adding, with the most that a column can cost.
// P2  An output of at most `outputBytesMax(bytesMax)` bytes fits into an empty page.

export interface LinePage {
  /** Whole lines of the chunk from `start` on, as many as there are and as fit; gives the place behind the last of them. */
  addLines(stream: number, at: number, chunk: Buffer, start: number, most: LinesMax): number
  /** One output. False if there is no room for it. */
  add(stream: number, at: number, bytes: Uint8Array, start: number, end: number, continued: boolean): boolean
  count(): number
  /** Upper bound of what it encodes to. */
  bytes(): number
  /** Wall time of the first output. */
  timestamp(): number
  /** A JobEvent with the whole page. A view into the page: good until it is cleared. */
  encode(sequence: number, trigger: number, playbackIntervalMs: number): Uint8Array
  clear(): void
}

export interface LinesMax {
  /** The most outputs in the page. */
  readonly count: number
  /** The longest line. */
  readonly bytes: number
}

/** The most that the three numbers of a run take. */
const runBytes = 11
/** The most that the place of a continued output takes. */
const placeBytes = 3
/** What the column of runs can say. */
const deltaMsMax = 2 ** 32 - 1
const newline = 10

/** The largest output that a page takes whole. */
export const outputBytesMax = (bytesMax: number): number =>
  bytesMax - headerBytes - trailerBytes - runBytes - placeBytes - varintSize(bytesMax)

/** `bytesLikely`: what it begins with, where something is known of what it will take. */
export const createLinePage = (bytesMax: number, bytesLikely = firstBytes): LinePage => {
  let buffer = Buffer.allocUnsafeSlow(Math.min(bytesMax, Math.max(firstBytes, bytesLikely)))
  let dataEnd = headerBytes
  let lengths = Buffer.allocUnsafeSlow(lengthsFirst)
  let lengthsEnd = 0
  let count = 0
  // Finished runs and places, as they are written.
  const runs: number[] = []
  const places: number[] = []
  let runCount = 0
  let runStream = 0
  let runAt = 0
  let lastAt = 0
  let firstAt = 0
  let room = bytesMax - headerBytes - trailerBytes

  const endRun = (): void => {
    if (count > 0) runs.push(runCount, runStream, runAt - lastAt)
    lastAt = runAt
    runCount = 0
  }

  const isSameRun = (stream: number, at: number): boolean => count > 0 && stream === runStream && at === runAt

  /** What it costs to say when and from where the next output comes; more than there is if the clock jumped too far to say. */
  const runCost = (stream: number, at: number): number => {
    if (isSameRun(stream, at)) return 0
    return count > 0 && at - runAt > deltaMsMax ? Number.POSITIVE_INFINITY : runBytes
  }

  const joinRun = (stream: number, at: number): void => {
    if (isSameRun(stream, at)) return
    room -= runBytes
    endRun()
    if (count === 0) {
      firstAt = at
      lastAt = at
    }
    runStream = stream
    runAt = at
  }

  const copy = (bytes: Uint8Array, start: number, end: number): void => {
    makeRoom(end - start)
    buffer.set(start === 0 && end === bytes.length ? bytes : bytes.subarray(start, end), dataEnd)
    dataEnd += end - start
  }

  const makeRoom = (more: number): void => {
    const needed = dataEnd + more
    if (needed <= buffer.length) return
    const larger = Buffer.allocUnsafeSlow(Math.max(needed, Math.min(bytesMax, 2 * buffer.length)))
    buffer.copy(larger, headerBytes, headerBytes, dataEnd)
    buffer = larger
  }

  const makeLengthsRoom = (more: number): void => {
    if (lengthsEnd + more <= lengths.length) return
    const larger = Buffer.allocUnsafeSlow(Math.max(lengthsEnd + more, 2 * lengths.length))
    lengths.copy(larger, 0, 0, lengthsEnd)
    lengths = larger
  }

  return {
    addLines: (stream, at, chunk, start, most) => {
      const countMax = most.count - count
      const lineMax = most.bytes
      makeLengthsRoom(lengthBytesMax * countMax)
      const column = lengths
      let taken = start
      let lines = 0
      let left = room - runCost(stream, at)
      let place = lengthsEnd
      for (; lines < countMax; lines++) {
        const found = chunk.indexOf(newline, taken)
        const length = found + 1 - taken
        if (found < 0 || length > lineMax) break
        left -= length + (length < 0x80 ? 1 : varintSize(length))
        if (left < 0) break
        if (length < 0x80) column[place++] = length
        else place = writeVarint(column, place, length)
        taken = found + 1
      }
      if (lines === 0) return start
      joinRun(stream, at)
      room -= taken - start + place - lengthsEnd
      lengthsEnd = place
      count += lines
      runCount += lines
      copy(chunk, start, taken)
      return taken
    },
    add: (stream, at, bytes, start, end, continued) => {
      const length = end - start
      const cost = length + varintSize(length) + (continued ? placeBytes : 0)
      if (room < cost + runCost(stream, at)) return false
      joinRun(stream, at)
      room -= cost
      makeLengthsRoom(lengthBytesMax)
      lengthsEnd = writeVarint(lengths, lengthsEnd, length)
      if (continued) places.push(count)
      count += 1
      runCount += 1
      copy(bytes, start, end)
      return true
    },
    count: () => count,
    bytes: () => bytesMax - room,
    timestamp: () => firstAt,
    encode: (sequence, trigger, playbackIntervalMs) => {
      endRun()
      makeRoom(lengthsEnd + (runs.length / 3) * runBytes + places.length * placeBytes + trailerBytes)
      const end = writeColumns(buffer, dataEnd, {
        lengths: lengths.subarray(0, lengthsEnd),
        runs,
        places,
        trigger,
        playbackIntervalMs,
      })
      const begin = writeHeader(buffer, { sequence, count, timestamp: firstAt, dataEnd, end })
      return buffer.subarray(begin, end)
    },
    clear: () => {
      dataEnd = headerBytes
      lengthsEnd = 0
      count = 0
      runs.length = 0
      places.length = 0
      runCount = 0
      room = bytesMax - headerBytes - trailerBytes
    },
  }
}

/** A log that says little takes little; pages grow up to their limit. */
const firstBytes = 4_096
const lengthsFirst = 256
/** Pages are far below what would need four. */
const lengthBytesMax = 3
