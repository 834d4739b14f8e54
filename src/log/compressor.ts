// Compressing on the thread pool with compressors that are used again. Making one takes a quarter of a megabyte, which would be
// asked for, cleared, told to the garbage collector and given back for every page.

import { constants, createDeflateRaw, type DeflateRaw } from 'node:zlib'

/** As many as the thread pool works at side by side; more would only wait inside it. */
const compressorsMax = 4
/** Most pages come out in one piece of this size. */
const pieceBytes = 64 * 1_024

interface Compressor {
  readonly stream: DeflateRaw
  pieces: Uint8Array[]
}

interface Task {
  readonly plain: Uint8Array
  readonly resolve: (packed: Uint8Array) => void
  readonly reject: (cause: unknown) => void
}

export interface Compressing {
  /** Raw deflate. The plain bytes must stay as they are until it resolves. */
  compress(plain: Uint8Array): Promise<Uint8Array>
}

export const createCompressing = (level: number): Compressing => {
  const idle: Compressor[] = []
  const waiting: Task[] = []
  let made = 0

  const make = (): Compressor => {
    made += 1
    const stream = createDeflateRaw({ level, chunkSize: pieceBytes })
    const compressor: Compressor = { stream, pieces: [] }
    stream.on('data', (piece: Uint8Array) => compressor.pieces.push(piece))
    return compressor
  }

  const start = (compressor: Compressor, task: Task): void => {
    const { stream } = compressor
    // A compressor that failed is not used again.
    const failed = (cause: unknown): void => {
      made -= 1
      task.reject(cause)
      next()
    }
    stream.once('error', failed)
    stream.write(task.plain)
    stream.flush(constants.Z_FINISH, () => {
      const packed =
        compressor.pieces.length === 1 ? (compressor.pieces[0] as Uint8Array) : Buffer.concat(compressor.pieces)
      stream.off('error', failed)
      stream.reset()
      compressor.pieces = []
      idle.push(compressor)
      task.resolve(packed)
      next()
    })
  }

  const next = (): void => {
    while (waiting.length > 0) {
      const compressor = idle.pop() ?? (made < compressorsMax ? make() : undefined)
      if (compressor === undefined) return
      start(compressor, waiting.shift() as Task)
    }
  }

  return {
    compress: (plain) =>
      new Promise((resolve, reject) => {
        waiting.push({ plain, resolve, reject })
        next()
      }),
  }
}
