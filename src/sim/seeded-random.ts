import { createHash } from 'node:crypto'
import type { Random } from '../kernel/random.ts'

export interface SeededRandom extends Random {
  /** An independent stream with a name of its own: one draw more here shifts nothing there. */
  fork(label: string): SeededRandom
}

/** Chance from a seed: the same seed and label give the same draws on every machine. */
export const createSeededRandom = (seed: number | string, label = ''): SeededRandom => {
  const key = createHash('sha256').update(`${seed}\n${label}`).digest()
  // sfc32: small, fast, passes the usual batteries; three words of state from the hash and a counter.
  let a = key.readInt32LE(0)
  let b = key.readInt32LE(4)
  let c = key.readInt32LE(8)
  let counter = 1
  const word = (): number => {
    const mixed = (((a + b) | 0) + counter) | 0
    counter = (counter + 1) | 0
    a = b ^ (b >>> 9)
    b = (c + (c << 3)) | 0
    c = ((c << 21) | (c >>> 11)) + mixed
    c |= 0
    return mixed >>> 0
  }
  for (let warm = 0; warm < 12; warm++) word()
  return {
    next: () => word() / 2 ** 32,
    bytes: (length) => Uint8Array.from({ length }, () => word() & 0xff),
    fork: (name) => createSeededRandom(seed, `${label}/${name}`),
  }
}
