// The limit of a job's output: the head is kept, and of what comes beyond it the last bytes of each stream, so that a reader
// sees how it began and how it ended. How much is missing between the two is known exactly.

export interface OutputLimit {
  /** How many bytes of the chunk belong to the head; the rest was taken aside. */
  admit(stream: number, chunk: Buffer): number
  /** What was taken aside, stream by stream: how much of it is gone, and the end of it. */
  rest(): readonly { readonly stream: number; readonly dropped: number; readonly kept: Buffer }[]
}

/** Of each stream that went beyond the limit. */
const keptBytes = 64 * 1_024
const newline = 10

/** A limit of 0 is none. */
export const createOutputLimit = (bytesMax: number): OutputLimit => {
  let left = bytesMax === 0 ? Number.POSITIVE_INFINITY : bytesMax
  const aside = new Map<number, Aside>()

  const keepAside = (stream: number, bytes: Buffer): void => {
    const known = aside.get(stream)
    if (known === undefined)
      aside.set(stream, putBehind({ ring: Buffer.allocUnsafeSlow(2 * keptBytes), end: 0, total: 0 }, bytes))
    else putBehind(known, bytes)
  }

  return {
    admit: (stream, chunk) => {
      if (chunk.length <= left && left > 0) {
        left -= chunk.length
        return chunk.length
      }
      const admitted = left
      left = 0
      keepAside(stream, chunk.subarray(admitted))
      return admitted
    },
    rest: () => [...aside].sort(([a], [b]) => a - b).map(([stream, one]) => ({ stream, ...restOf(one) })),
  }
}

/** The last bytes stand in front of `end`; they are moved to the front only when the buffer is full. */
interface Aside {
  readonly ring: Buffer
  end: number
  total: number
}

const putBehind = (aside: Aside, bytes: Buffer): Aside => {
  aside.total += bytes.length
  const fresh = bytes.length > keptBytes ? bytes.subarray(bytes.length - keptBytes) : bytes
  if (aside.end + fresh.length > aside.ring.length) {
    const staying = Math.min(aside.end, keptBytes)
    aside.ring.copy(aside.ring, 0, aside.end - staying, aside.end)
    aside.end = staying
  }
  aside.ring.set(fresh, aside.end)
  aside.end += fresh.length
  return aside
}

const restOf = ({ ring, end, total }: Aside): { dropped: number; kept: Buffer } => {
  const last = ring.subarray(Math.max(0, end - keptBytes), end)
  if (last.length === total) return { dropped: 0, kept: last }
  // What is left begins with a whole line, if there is one.
  const kept = last.subarray(last.indexOf(newline) + 1)
  return kept.length === 0 ? { dropped: total - last.length, kept: last } : { dropped: total - kept.length, kept }
}
