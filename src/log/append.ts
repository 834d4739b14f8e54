import { createBatcherOver } from '../batch/batcher.ts'
import type { Flushed } from '../batch/flights.ts'
import type { Sealed } from '../batch/hold.ts'
import type { ExecutionConfig } from '../config/sections/jobs.ts'
import { assert } from '../kernel/assert.ts'
import type { Clock, Timer } from '../kernel/clock.ts'
import { isFault } from '../kernel/fault.ts'
import type { Random } from '../kernel/random.ts'
import type { Emit } from '../telemetry/events.ts'
import type { AttemptLog } from './attempt-log.ts'
import { type StoredItem, type StreamName, streams } from './event.ts'
import { LogClosed } from './faults.ts'
import { createOutputLimit } from './output-limit.ts'
import { createPageHold, type Page, type Piece } from './page-hold.ts'
import { type Deflate, deflatePooled } from './payload.ts'
import * as single from './single-event.ts'
import { createTotals } from './totals.ts'
import { createWatchedFlush } from './watched-flush.ts'

// Appending: chunks of output → pages → stored items, acknowledged in order. The batcher decides when a page leaves and what
// follows a failure; the hold cuts lines and counts; what is here is the life of one log: start, output, end.
//
// A1  One call of `publish` at a time. Failures that pass are tried again for ever; one that does not ends the log.
// A2  The start waits a turn for company: an attempt that ends at once stores its whole log with its outcome.
// A3  What has not left when the log ends belongs into the settling transaction, as long as it is little.

export interface AppendDeps {
  readonly clock: Clock
  readonly random: Random
  /** Stores the items, at most 25. Storing the same items twice changes nothing. A Fault that says `never` ends the log. */
  publish(items: readonly StoredItem[]): Promise<unknown>
  readonly emit: Emit
  /** How pages are compressed: on the thread pool, unless something else is given. */
  readonly deflate?: Deflate
}

export interface AppendOptions {
  readonly jobId: string
  readonly attempt: number
  /** The least time between two flushes for somebody who watches, where each costs. */
  readonly watchedFloorMs?: number
  /** High-water mark: beyond this many bytes the process is made to wait. At least two calls of the store. */
  readonly heldBytesMax?: number
}

const heldBytesDefault = 8 * 1_024 * 1_024
/** What the settling transaction takes beside the outcome: little, because what stands in a transaction is billed twice. */
const restItemsMax = 20
const restBytesMax = 8 * 1_024
const retry = { attemptsMax: Number.POSITIVE_INFINITY, baseMs: 100, capMs: 5_000 }

export const createAttemptLog = (deps: AppendDeps, config: ExecutionConfig, options: AppendOptions): AttemptLog => {
  const { clock, emit } = deps
  const { jobId, attempt, watchedFloorMs = 0, heldBytesMax = heldBytesDefault } = options
  const totals = createTotals()
  const limit = createOutputLimit(config.maxOutputBytes)
  let startedAt: number | undefined
  let starting: Timer
  let ended = false
  let failure: { readonly cause: unknown } | undefined
  let reject: (cause: unknown) => void = () => {}
  const failed = new Promise<never>((_, refuse) => {
    reject = refuse
  })
  // Whoever does not look at it is told by `finish`.
  failed.catch(() => {})
  let room: { readonly promise: Promise<void>; readonly resolve: () => void } | undefined

  const released = (): void => {
    if (room !== undefined && hold.held.bytes <= heldBytesMax / 2) openUp()
    watched.left()
  }
  const openUp = (): void => {
    room?.resolve()
    room = undefined
  }

  const hold = createPageHold({ clock, deflate: deps.deflate ?? deflatePooled }, config, {
    counted: totals.countOutputs,
    released,
  })

  const flush = ({ items: pages }: Sealed<Page>): Promise<void> => {
    watched.flushed()
    const items = pages.map(({ item }) => item)
    // Nothing is waited for that is there: the first output of a quiet period leaves in the turn it came.
    return items.every(isReady) ? store(items) : Promise.all(items).then(store)
  }

  const store = async (items: readonly StoredItem[]): Promise<void> => {
    try {
      await deps.publish(items)
    } catch (cause) {
      const code = isFault(cause) ? { code: cause.code } : {}
      if (!isRefusal(cause))
        emit({ name: 'warning', text: 'log items were not stored and will be tried again', ...code })
      throw cause
    }
  }

  const report = ({ items: pages, trigger, waitedMs, tookMs }: Flushed<Page>): void => {
    const events = pages.reduce((sum, { head }) => sum + head.endSequence - head.sequence + 1, 0)
    const bytes = pages.reduce((sum, { item }) => sum + (isReady(item) ? item.payload.length : 0), 0)
    emit({ name: 'log.flushed', jobId, attempt, trigger, items: pages.length, events, bytes, waitedMs, tookMs })
  }

  const stop = (cause: unknown): void => {
    failure ??= { cause }
    end()
    batcher.revoke()
    openUp()
  }

  const reasonOr = (cause: unknown): unknown => (failure === undefined ? cause : failure.cause)

  const end = (): void => {
    ended = true
    clock.clearTimeout(starting)
    watched.stop()
  }

  const batcher = createBatcherOver<Piece, Page>(deps, { ageMs: config.flushIntervalMs, retry }, hold, {
    sizeOf: (piece) => ('bytes' in piece ? piece.bytes.length : 0),
    flush,
    flushed: report,
    stuck: (_, cause) => {
      stop(cause)
      reject(cause)
    },
  })
  const watched = createWatchedFlush(
    { clock, isOpen: () => hold.openedAt() !== undefined, flushNow: batcher.flushNow },
    watchedFloorMs,
  )

  const now = (): number => Math.floor(clock.now())
  const check = (): void => assert(startedAt !== undefined, 'a log that has not started')
  const place = (event: single.SingleEvent): void => {
    check()
    if (ended) return
    batcher.add({ event, at: now() })
    watched.came()
  }

  const take = (stream: number, bytes: Buffer): void => {
    totals.count(stream, bytes)
    batcher.add({ stream, bytes, at: now() })
  }

  /** What the limit kept aside, with how much is missing before it. */
  const takeAside = (): void => {
    for (const { stream, dropped, kept } of limit.rest()) {
      const reason = `the output of this job is limited to ${config.maxOutputBytes} bytes`
      if (dropped > 0) batcher.add({ event: single.outputCut(nameOf(stream), dropped, reason), at: now() })
      take(stream, kept)
    }
  }

  /** Publishes what is in line or in flight, unless it fits into the settling transaction (A3); gives back what belongs there. */
  const publishRest = async (pages: readonly Page[]): Promise<readonly Page[]> => {
    const bytes = pages.reduce((sum, page) => sum + page.bytes, 0)
    if (!hold.isAloft()) {
      if (hold.held.count + pages.length <= restItemsMax && hold.held.bytes + bytes <= restBytesMax)
        return [...batcher.revoke(), ...pages]
    }
    const isLittle = pages.length <= restItemsMax && bytes <= restBytesMax
    if (!isLittle) hold.lineUpAgain(pages)
    batcher.flushNow()
    await batcher.drain()
    return isLittle ? pages : []
  }

  return {
    start: (info) => {
      assert(startedAt === undefined, 'a log that starts twice')
      startedAt = now()
      hold.lineUp(single.processStart(info), startedAt)
      starting = clock.setTimeout(() => {
        // Alone in line: whatever came behind it has taken it along.
        if (!hold.isAloft() && hold.waiting() !== undefined) batcher.flushNow()
      }, 0)
    },
    output: (stream, bytes) => {
      check()
      if (ended || bytes.length === 0) return undefined
      const chunk = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
      const admitted = limit.admit(streams[stream], chunk)
      if (admitted === 0) return undefined
      take(streams[stream], admitted === chunk.length ? chunk : chunk.subarray(0, admitted))
      watched.came()
      if (hold.held.bytes <= heldBytesMax) return room?.promise
      room ??= promised()
      return room.promise
    },
    error: async (message) => {
      check()
      if (failure !== undefined) throw failure.cause
      if (ended) throw new LogClosed('the log has ended')
      await batcher.barrier({ event: single.processError(message), at: now() })
    },
    progress: (info) => place(single.progress(info)),
    cut: (stream, bytes, reason) => place(single.outputCut(stream, bytes, reason)),
    setWatched: watched.set,
    finish: async (info) => {
      check()
      if (failure !== undefined) throw failure.cause
      assert(!ended, 'a log that ends twice')
      takeAside()
      end()
      const rest = hold.takeRest()
      const last = hold.takeAlone(single.processEnd(info, totals.sum(), startedAt as number), now())
      try {
        const pages = await publishRest(rest)
        const output = await Promise.all(pages.map(({ item }) => item))
        return { output, end: await last.item }
      } catch (cause) {
        // The batcher says only that it is closed; what closed it is told here.
        throw reasonOr(cause)
      } finally {
        openUp()
      }
    },
    abandon: () => stop(new LogClosed('the attempt was abandoned')),
    failed,
  }
}

const nameOf = (stream: number): StreamName => (stream === streams.stderr ? 'stderr' : 'stdout')

const isReady = (item: StoredItem | Promise<StoredItem>): item is StoredItem => 'payload' in item

const isRefusal = (cause: unknown): boolean => isFault(cause) && cause.retry === 'never'

const promised = () => {
  let resolve: () => void = () => {}
  const promise = new Promise<void>((done) => {
    resolve = done
  })
  return { promise, resolve }
}
