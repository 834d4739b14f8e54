// Room on the disk, made before a transaction needs it.
//
// LMDB must never meet a full disk: where a write fails for want of space, the library describes the error in memory that
// is too short for it and takes the process down. So when the disk is nearly full, the data file always reaches further than
// the next transaction can write, filled with zeros by us; if that fails, it fails here, as an ordinary error, and nothing was
// begun. While there is plenty of room nothing is written ahead: it would double what goes to the disk.

import { statfsSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { dataFile } from './header.ts'

export interface Room {
  /** Resolves when the file has room for a transaction of so many operations and bytes; undefined if it has already. */
  reserve(operations: number, bytes: number): Promise<void> | undefined
}

const pageBytes = 4_096
/** A leaf and a few branches above it are copied for each entry … */
const pagesEach = 4
/** … but no more pages than there are, and those that new data fills at least half. */
const entryBytes = 100
/** What adds data leaves more than it needs, so that removing data, and signs of life, still find room on a full disk. */
const pagesBesides = { adding: 64, removing: 8 }
const stepMin = 1024 * 1024
const stepMax = 4 * 1024 * 1024

/** Far more than one transaction can take, so that nobody else can use it up while one is under way. */
const plenty = 256 * 1024 * 1024

const freeBytes = (path: string): number => {
  const { bavail, bsize } = statfsSync(path)
  return bavail * bsize
}

const bytesAtMost = (operations: number, bytes: number, pages: number): number => {
  const filled = Math.ceil((2 * (bytes + entryBytes * operations)) / pageBytes)
  const besides = bytes > 0 ? pagesBesides.adding : pagesBesides.removing
  return (Math.min(pagesEach * operations, pages + filled) + besides) * pageBytes + bytes
}

/** `lastPage`: the highest page that is in use. */
export const createRoom = (path: string, lastPage: () => number): Room => {
  let size = 0
  /** How far the file is in use at most: what was known last, and what may have been written since. */
  let used = Number.POSITIVE_INFINITY

  /** Only between transactions: nobody else writes behind the end of the file. */
  const extend = async (need: number): Promise<void> => {
    const file = await open(dataFile(path), 'r+')
    try {
      size = (await file.stat()).size
      const missing = need - (size - used)
      if (missing <= 0) return
      const step = Math.min(stepMax, Math.max(stepMin, size / 8))
      const goal = Math.ceil((size + missing + step) / pageBytes) * pageBytes
      const zeros = Buffer.alloc(stepMin)
      while (size < goal) size += (await file.write(zeros, 0, Math.min(zeros.length, goal - size), size)).bytesWritten
    } catch (error) {
      // Less than we would like is enough if it is what the transaction needs.
      if (size - used < need) throw error
    } finally {
      await file.close()
    }
  }

  return {
    reserve: (operations, bytes) => {
      if (freeBytes(path) > plenty) {
        // What is used is not followed here: it is looked up when the disk fills.
        used = Number.POSITIVE_INFINITY
        return undefined
      }
      const need = bytesAtMost(operations, bytes, used / pageBytes)
      if (size - used < need) used = (lastPage() + 1) * pageBytes
      if (size - used >= need) {
        used += need
        return undefined
      }
      return extend(need).then(() => {
        used += need
      })
    },
  }
}
