import { getRandomValues, randomInt } from 'node:crypto'

/** The port of chance. */
export interface Random {
  /** Uniform in [0, 1). */
  next(): number
  /** Fresh bytes; unguessable on a real machine, repeatable in a simulation. */
  bytes(length: number): Uint8Array
}

const resolution = 2 ** 47
const poolBytes = 4_096
/** Requests above this go to the system directly. */
const pooledMax = 64

/** The machine's own chance, good enough for secrets. Small requests share one call to the system, which costs more than they do. */
const createSystemRandom = (): Random => {
  let pool = new Uint8Array(0)
  let used = 0
  return {
    next: () => randomInt(resolution) / resolution,
    bytes: (length) => {
      if (length > pooledMax) return getRandomValues(new Uint8Array(length))
      if (used + length > pool.length) {
        pool = getRandomValues(new Uint8Array(poolBytes))
        used = 0
      }
      used += length
      // Handed out once and never again: the pool moves on.
      return pool.subarray(used - length, used)
    },
  }
}

export const systemRandom: Random = createSystemRandom()
