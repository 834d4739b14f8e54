import { crc32 } from 'node:zlib'
import type { Claim, Renewal } from '../../src/jobs/job.ts'
import type { Clock } from '../../src/kernel/clock.ts'
import { isFault } from '../../src/kernel/fault.ts'
import type { AttemptLog, EndInfo } from '../../src/log/attempt-log.ts'
import { type EventType, eventTypes, type StoredItem } from '../../src/log/event.ts'

/** An entry of a log as text, one per event. */
export interface Entry {
  readonly type: EventType
  readonly at: number
  readonly data: Record<string, unknown>
}

export const itemOf = (sequence: number, type: EventType, at: number, data: unknown): StoredItem => {
  const payload = Buffer.from(JSON.stringify(data))
  return { sequence, endSequence: sequence, timestamp: at, type, payload, encoding: 0, crc: crc32(payload) }
}

export const entryOf = ({ type, timestamp, payload }: StoredItem): Entry => ({
  type,
  at: timestamp,
  data: JSON.parse(Buffer.from(payload).toString()) as Record<string, unknown>,
})

export interface MemoryLogOptions {
  /** Bytes that may wait to be published before the writer has to. */
  readonly highWater?: number
  /** Told how many bytes wait. */
  readonly waits?: (bytes: number) => void
}

/** A small log that keeps the promises of the port: order, back-pressure, retries, one call at a time. */
export const createMemoryLog = (
  clock: Clock,
  { hold }: Claim,
  publish: (items: readonly StoredItem[]) => Promise<Renewal>,
  options: MemoryLogOptions = {},
): AttemptLog & { readonly watched: boolean } => {
  const { highWater = 1_000_000 } = options
  let sequence = 0
  let waiting: StoredItem[] = []
  const sizes = new Map<StoredItem, number>()
  let bytesWaiting = 0
  let state: 'open' | 'finished' | 'abandoned' = 'open'
  let started = false
  let watched = false
  let publishing: Promise<void> | undefined
  let refuse: (error: unknown) => void = () => {}
  let refused: unknown
  const failed = new Promise<never>((_, reject) => {
    refuse = (error) => {
      refused = error
      reject(error)
    }
  })
  failed.catch(() => {})
  let room: { readonly promise: Promise<void>; readonly resolve: () => void } | undefined

  const add = (type: EventType, data: unknown, bytes = 0): void => {
    if (state === 'abandoned') return
    if (state === 'finished') throw new Error(`event ${type} after the end of ${hold.jobId}#${hold.attempt}`)
    if (!started) throw new Error('the log was not started')
    sequence += 1
    const item = itemOf(sequence, type, clock.now(), data)
    waiting.push(item)
    sizes.set(item, bytes)
    bytesWaiting += bytes
    options.waits?.(bytesWaiting)
  }

  const flush = (): Promise<void> => {
    publishing ??= publishAll().finally(() => {
      publishing = undefined
      // Whoever was let in by the last call came too late for its loop.
      if (waiting.length > 0 && refused === undefined && state === 'open') flushQuietly()
    })
    return publishing
  }

  const publishAll = async (): Promise<void> => {
    while (waiting.length > 0 && state !== 'abandoned') {
      const items = waiting.slice(0, 25)
      try {
        await publish(items)
      } catch (error) {
        if (isFault(error) && error.retry === 'never') {
          refuse(error)
          throw error
        }
        await new Promise<void>((resolve) => void clock.setTimeout(resolve, 1_000))
        continue
      }
      waiting = waiting.slice(items.length)
      for (const item of items) bytesWaiting -= sizes.get(item) ?? 0
      if (bytesWaiting > highWater) continue
      room?.resolve()
      room = undefined
    }
  }
  const flushQuietly = (): void => void flush().catch(() => {})

  return {
    get watched() {
      return watched
    },
    failed,
    start: (info) => {
      started = true
      add(eventTypes.processStart, info)
      flushQuietly()
    },
    output: (stream, bytes) => {
      add(eventTypes.output, { stream, text: Buffer.from(bytes).toString('latin1') }, bytes.length)
      if (publishing === undefined) queueMicrotask(flushQuietly)
      if (bytesWaiting <= highWater) return undefined
      if (room === undefined) {
        let resolve = () => {}
        const promise = new Promise<void>((done) => {
          resolve = done
        })
        room = { promise, resolve }
      }
      return room.promise
    },
    error: (message) => {
      add(eventTypes.processError, { message })
      return flush()
    },
    progress: (info) => add(eventTypes.progress, info),
    cut: (stream, bytes, reason) => add(eventTypes.outputCut, { stream, bytes, reason }),
    setWatched: (now) => {
      watched = now
    },
    finish: async (end: EndInfo) => {
      add(eventTypes.processEnd, end)
      state = 'finished'
      const last = waiting.pop() as StoredItem
      while (waiting.length > 0) await flush()
      if (refused !== undefined) throw refused
      return { output: [], end: last }
    },
    abandon: () => {
      state = 'abandoned'
      room?.resolve()
    },
  }
}
