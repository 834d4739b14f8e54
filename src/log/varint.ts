// The variable-length numbers of protobuf, for the fast paths of the batch message. Numbers are safe integers, so that a
// sequence is never rounded.

/** How many bytes the number takes. */
export const varintSize = (value: number): number => {
  let size = 1
  for (let rest = value; rest >= 0x80; rest = Math.floor(rest / 0x80)) size += 1
  return size
}

/** Writes the number and gives the place behind it. */
export const writeVarint = (into: Uint8Array, at: number, value: number): number => {
  let rest = value
  let place = at
  while (rest >= 0x80) {
    into[place++] = (rest % 0x80) | 0x80
    rest = Math.floor(rest / 0x80)
  }
  into[place++] = rest
  return place
}

/** Reads numbers one after the other. Total: what cannot be read makes it bad, and it stays bad. */
export interface VarintReader {
  /** The next number; 0 once the reader is bad. */
  next(): number
  /** Moves on without looking. */
  skip(bytes: number): void
  place(): number
  isAtEnd(): boolean
  isBad(): boolean
}

export const createVarintReader = (bytes: Uint8Array, from = 0, to = bytes.length): VarintReader => {
  let at = from
  let bad = false

  const long = (first: number): number => {
    let value = first & 0x7f
    let scale = 0x80
    while (at < to) {
      const byte = bytes[at++] as number
      value += (byte & 0x7f) * scale
      // Beyond the safe integers, or longer than any number is written.
      if (value > Number.MAX_SAFE_INTEGER || scale > 2 ** 56) break
      if (byte < 0x80) return value
      scale *= 0x80
    }
    bad = true
    return 0
  }

  return {
    next: () => {
      if (bad || at >= to) {
        bad = true
        return 0
      }
      const byte = bytes[at++] as number
      return byte < 0x80 ? byte : long(byte)
    },
    skip: (count) => {
      if (count > to - at) bad = true
      else at += count
    },
    place: () => at,
    isAtEnd: () => bad || at >= to,
    isBad: () => bad,
  }
}
