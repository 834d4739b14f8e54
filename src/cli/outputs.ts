import type { Input, Output } from './context.ts'
import { OutputClosed, UsageInvalid } from './faults.ts'

const columnsUsual = 80

/** A stream of the process as an output: waits while it is full, and says when nobody reads it any more. */
export const createOutput = (stream: NodeJS.WriteStream): Output => {
  let broken: Error | undefined
  const waiting = new Set<(error: Error) => void>()
  stream.on('error', (error: NodeJS.ErrnoException) => {
    broken = error.code === 'EPIPE' || error.code === 'ERR_STREAM_DESTROYED' ? new OutputClosed(error) : error
    for (const fail of waiting) fail(broken)
    waiting.clear()
  })
  return {
    isTerminal: stream.isTTY === true,
    get columns() {
      return stream.columns || columnsUsual
    },
    write: (bytes) => {
      if (broken) return Promise.reject(broken)
      if (stream.write(bytes)) return undefined
      return new Promise<void>((resolve, reject) => {
        waiting.add(reject)
        stream.once('drain', () => {
          waiting.delete(reject)
          resolve()
        })
      })
    },
  }
}

export const createInput = (stream: NodeJS.ReadStream): Input => ({
  isTerminal: stream.isTTY === true,
  readAll: async (bytesMax) => {
    const chunks: Buffer[] = []
    let bytes = 0
    for await (const chunk of stream as AsyncIterable<Buffer>) {
      chunks.push(chunk)
      bytes += chunk.length
      if (bytes > bytesMax) throw new UsageInvalid(`--stdin takes at most ${bytesMax} bytes`, { field: '--stdin' })
    }
    return Buffer.concat(chunks)
  },
})
