import { getRandomValues, randomInt } from 'node:crypto'

/** The port of chance. */
export interface Random {
  /** Uniform in [0, 1). */
  next(): number
  /** Fresh bytes; unguessable on a real machine, repeatable in a simulation. */
  bytes(length: number): Uint8Array
}

const resolution = 2 ** 47

/** The machine's own chance, good enough for secrets. */
export const systemRandom: Random = {
  next: () => randomInt(resolution) / resolution,
  bytes: (length) => getRandomValues(new Uint8Array(length)),
}
