import type { StoredItem } from './event.ts'

/** The last items of a log, in a row without gaps, as many as fit. */
export interface Ring {
  /** Items that are stored, in order. What is known already is passed over; a gap empties the ring first. */
  put(items: readonly StoredItem[]): boolean
  /** The item that contains the sequence. */
  find(sequence: number): StoredItem | undefined
  /** The last sequence, if there is any. */
  end(): number | undefined
}

export const createRing = (bytesMax: number): Ring => {
  const items: StoredItem[] = []
  let bytes = 0

  const put = (item: StoredItem): boolean => {
    const last = items.at(-1)
    if (last !== undefined && item.endSequence <= last.endSequence) return false
    if (last !== undefined && item.sequence !== last.endSequence + 1) {
      items.length = 0
      bytes = 0
    }
    items.push(item)
    bytes += sizeOf(item)
    return true
  }

  /** The newest stays, whatever its size: it says where the log ends. */
  const shrink = (): void => {
    let out = 0
    while (bytes > bytesMax && out < items.length - 1) bytes -= sizeOf(items[out++] as StoredItem)
    if (out > 0) items.splice(0, out)
  }

  return {
    put: (fresh) => {
      let isNew = false
      for (const item of fresh) isNew = put(item) || isNew
      shrink()
      return isNew
    },
    find: (sequence) => {
      let low = 0
      let high = items.length
      while (low < high) {
        const middle = (low + high) >> 1
        if ((items[middle] as StoredItem).endSequence < sequence) low = middle + 1
        else high = middle
      }
      const item = items[low]
      return item !== undefined && item.sequence <= sequence ? item : undefined
    },
    end: () => items.at(-1)?.endSequence,
  }
}

/** With what an object costs besides its payload. */
const sizeOf = ({ payload }: StoredItem): number => payload.length + 128
