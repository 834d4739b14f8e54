import { assert } from '../kernel/assert.ts'

/** Entries in the order of their keys: an array with binary search, which at our sizes beats every tree. */
export interface Sorted<K, V> {
  set(key: K, value: V): void
  delete(key: K): void
  get(key: K): V | undefined
  readonly size: number
  /** At most `limit` entries from one end of the range to the other. Bounds are included unless `after` moves one. */
  range(options: { from?: K; to?: K; after?: K; descending?: boolean; limit: number }): readonly (readonly [K, V])[]
}

export const createSorted = <K, V>(compare: (a: K, b: K) => number): Sorted<K, V> => {
  const keys: K[] = []
  const values: V[] = []
  /** The first position whose key is not below (or, with `past`, above) the given one. */
  const position = (key: K, past = false): number => {
    let low = 0
    let high = keys.length
    while (low < high) {
      const middle = (low + high) >>> 1
      const order = compare(keys[middle] as K, key)
      if (order < 0 || (past && order === 0)) low = middle + 1
      else high = middle
    }
    return low
  }
  const isAt = (index: number, key: K) => index < keys.length && compare(keys[index] as K, key) === 0
  return {
    set: (key, value) => {
      const index = position(key)
      if (isAt(index, key)) values[index] = value
      else {
        keys.splice(index, 0, key)
        values.splice(index, 0, value)
      }
    },
    delete: (key) => {
      const index = position(key)
      if (!isAt(index, key)) return
      keys.splice(index, 1)
      values.splice(index, 1)
    },
    get: (key) => {
      const index = position(key)
      return isAt(index, key) ? values[index] : undefined
    },
    get size() {
      return keys.length
    },
    range: ({ from, to, after, descending = false, limit }) => {
      assert(limit >= 0, `a range of ${limit}`)
      let low = from === undefined ? 0 : position(from)
      let high = to === undefined ? keys.length : position(to, true)
      if (after !== undefined && descending) high = Math.min(high, position(after))
      if (after !== undefined && !descending) low = Math.max(low, position(after, true))
      const count = Math.max(0, Math.min(limit, high - low))
      return Array.from({ length: count }, (_, offset) => {
        const index = descending ? high - 1 - offset : low + offset
        return [keys[index] as K, values[index] as V] as const
      })
    },
  }
}
