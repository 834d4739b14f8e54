import type { Trigger } from '../../machines/batch-buffer.ts'
import type { Batch, Hold, Promised } from '../batch/hold.ts'
import type { ExecutionConfig } from '../config/sections/jobs.ts'
import { assert } from '../kernel/assert.ts'
import type { Clock } from '../kernel/clock.ts'
import { createBatchSize } from './batch-size.ts'
import { eventTypes, type StoredItem } from './event.ts'
import { createLinePage, type LinePage, outputBytesMax } from './line-page.ts'
import { type Deflate, type EventHead, packItem } from './payload.ts'
import { encodeSingle, type SingleEvent } from './single-event.ts'
import { createSplitter } from './splitter.ts'
import { triggerNumbers } from './trigger-numbers.ts'

// What the batcher of a log holds: chunks and single events go in, pages leave, each of them one item to store. The same
// place as src/batch/hold.ts, with arithmetic over lines. Pages are packed as soon as they are closed, so that compressing and
// storing go on side by side.
//
// H1  Sequences are dense, in the order of the calls; timestamps never go back.
// H2  No page passes the current batch size or the job's bytes.
// H3  Everything is taken in at once; how much is held is for the owner to look at (law B4).

/** Bytes as they were read, or an event of its own. `at` is wall time. */
export type Piece =
  | { readonly stream: number; readonly bytes: Buffer; readonly at: number }
  | { readonly event: SingleEvent; readonly at: number }

/** One item on its way to the store. */
export interface Page {
  readonly head: EventHead
  readonly trigger: Trigger
  /** When the oldest of it came. */
  readonly since: number
  readonly barrier: Promised | undefined
  /** What it takes in memory just now. */
  bytes: number
  /** Whether its bytes count as held. */
  isHeld: boolean
  item: StoredItem | Promise<StoredItem>
}

export interface PageHold extends Hold<Piece, Page> {
  /** Puts an event in line without a word: it leaves with whatever comes next. */
  lineUp(event: SingleEvent, at: number): void
  /** Nothing more comes: takes out what is open, unfinished lines included. */
  takeRest(): readonly Page[]
  /** Puts pages that were taken out behind those in line. */
  lineUpAgain(pages: readonly Page[]): void
  /** The page of an event that is stored by other means, behind everything else. */
  takeAlone(event: SingleEvent, at: number): Page
  isAloft(): boolean
}

export interface PageHoldHooks {
  /** A number of outputs of a stream got their sequences. */
  counted(stream: number, outputs: number): void
  /** Pages left, and there is room again. */
  released(): void
}

/** What one call of the store takes. */
const groupMax = 25
const groupBytesMax = 2_000_000
/** No output is longer, however long its line. */
const lineCapBytes = 64 * 1_024
const sparePagesMax = 4

export const createPageHold = (
  deps: { readonly clock: Clock; readonly deflate: Deflate },
  config: ExecutionConfig,
  hooks: PageHoldHooks,
): PageHold => {
  const { clock, deflate } = deps
  const { maxBatchBytes, playbackIntervalMs } = config
  const size = createBatchSize(config)
  const lineMax = Math.min(lineCapBytes, outputBytesMax(maxBatchBytes))
  const spare: LinePage[] = []
  let page = createLinePage(maxBatchBytes)
  let sequence = 1
  let stamp = 0
  // The open batch: the page, what was closed in front of it, and when the first of it came.
  const closed: Page[] = []
  let pieces = 0
  let since = 0
  let now = 0
  let asked = false
  // The sealed ones: in line, and in flight.
  const line: Page[] = []
  let aloft = false
  let sealedBytes = 0

  const later = (at: number): number => {
    if (at > stamp) stamp = at
    return stamp
  }

  const add = (stream: number, at: number, bytes: Uint8Array, start: number, end: number, continued: boolean): void => {
    if (!page.add(stream, later(at), bytes, start, end, continued)) {
      sealOpen('bytes')
      assert(page.add(stream, later(at), bytes, start, end, continued), 'an output larger than a page')
    }
    hooks.counted(stream, 1)
    if (page.count() >= size.current()) sealOpen('count')
  }

  const addLines = (stream: number, at: number, chunk: Buffer, start: number): number => {
    const before = page.count()
    const taken = page.addLines(stream, later(at), chunk, start, { count: size.current(), bytes: lineMax })
    if (taken > start) hooks.counted(stream, page.count() - before)
    if (page.count() >= size.current()) sealOpen('count')
    return taken
  }

  const splitter = createSplitter({ add, addLines }, lineMax)

  const isEmpty = (): boolean => page.count() === 0 && closed.length === 0 && !splitter.holds()

  const close = (head: Omit<EventHead, 'sequence' | 'endSequence'>, count: number): EventHead => {
    const whole = { ...head, sequence, endSequence: sequence + count - 1 }
    sequence += count
    return whole
  }

  const closePage = (trigger: Trigger): void => {
    if (page.count() === 0) return
    const full = page
    const head = close({ timestamp: full.timestamp(), type: eventTypes.outputBatch }, full.count())
    const plain = full.encode(head.sequence, triggerNumbers[trigger], playbackIntervalMs)
    size.closed(trigger, now)
    // Pages follow each other in size; what is reserved and not used costs nothing but address space.
    page = spare.pop() ?? createLinePage(maxBatchBytes, plain.length + (plain.length >> 3))
    push(head, trigger, plain, () => {
      full.clear()
      if (spare.length < sparePagesMax) spare.push(full)
    })
  }

  const closeSingle = (event: SingleEvent, at: number, barrier?: Promised): void => {
    const head = close({ timestamp: later(at), type: event.type }, 1)
    push(head, 'barrier', encodeSingle(event, head.sequence, head.timestamp), () => {}, barrier)
  }

  /** An event that nobody waits for. Of reports of progress with nothing between them the newest is enough. */
  const place = (event: SingleEvent, at: number): void => {
    // What is missing from here on begins behind what was written of the line.
    if (event.type === eventTypes.outputCut) splitter.release(false)
    closePage('barrier')
    const last = closed.at(-1)
    if (event.type === eventTypes.progress && last?.head.type === event.type) {
      letGo(closed.splice(-1))
      sequence = last.head.sequence
    }
    closeSingle(event, at)
  }

  const push = (head: EventHead, trigger: Trigger, plain: Uint8Array, done: () => void, barrier?: Promised): void => {
    const item = packItem(head, plain, deflate)
    const made: Page = { head, trigger, since, barrier, bytes: plain.length, isHeld: true, item }
    sealedBytes += made.bytes
    closed.push(made)
    const packed = (ready: StoredItem): void => {
      done()
      if (made.isHeld) sealedBytes += ready.payload.length - made.bytes
      made.bytes = ready.payload.length
      made.item = ready
    }
    if (item instanceof Promise) void item.then(packed)
    else packed(item)
  }

  const sealOpen = (trigger: Trigger): void => {
    closePage(trigger)
    line.push(...closed.splice(0))
    asked = false
    pieces = 0
    since = now
  }

  const seal = (trigger: Trigger): void => {
    if (isEmpty()) return
    now = clock.monotonic()
    // A line that is being written is shown to whoever watches as soon as nothing else is there to be shown.
    if (trigger !== 'asked' || page.count() === 0) splitter.release(false)
    sealOpen(trigger)
  }

  const letGo = (pages: readonly Page[]): void => {
    for (const one of pages) {
      if (one.isHeld) sealedBytes -= one.bytes
      one.isHeld = false
    }
  }

  const batchOf = (pages: readonly Page[]): Batch<Page> => {
    const [first, last] = [pages[0], pages.at(-1)]
    assert(first && last, 'a flight without a sealed page')
    const bytes = pages.reduce((sum, one) => sum + one.bytes, 0)
    return { sealed: { items: pages, bytes, trigger: first.trigger }, since: first.since, barrier: last.barrier }
  }

  /** Of the pages in line those that are ready, and the first in any case; a barrier ends a group, because somebody waits for it. */
  const groupSize = (): number => {
    let bytes = 0
    for (const [place, one] of line.entries()) {
      bytes += one.bytes
      const isReady = !(one.item instanceof Promise)
      if (place > 0 && (place === groupMax || bytes > groupBytesMax || !isReady)) return place
      if (one.barrier !== undefined) return place + 1
    }
    return line.length
  }

  return {
    offer: (piece) => {
      now = clock.monotonic()
      const [wasEmpty, before] = [isEmpty(), line.length]
      if (wasEmpty) since = now
      pieces += 1
      if ('bytes' in piece) splitter.take(piece.stream, piece.at, piece.bytes)
      else place(piece.event, piece.at)
      return wasEmpty || line.length > before ? 'notable' : 'joined'
    },
    offerAlone: (piece, _, barrier) => {
      assert('event' in piece, 'output that travels alone')
      seal('barrier')
      now = clock.monotonic()
      since = now
      closeSingle(piece.event, piece.at, barrier)
      sealOpen('barrier')
      return true
    },
    seal,
    ask: () => {
      asked = !isEmpty()
    },
    sealIfAsked: () => {
      if (asked) seal('asked')
    },
    depart: () => {
      aloft = true
      return batchOf(line.splice(0, groupSize()))
    },
    release: ({ sealed }) => {
      aloft = false
      letGo(sealed.items)
      hooks.released()
    },
    abandon: () => {
      const pages = [...line.splice(0), ...closed.splice(0)]
      letGo(pages)
      page.clear()
      return pages.map((one) => batchOf([one]))
    },
    lineUp: (event, at) => {
      now = clock.monotonic()
      since = now
      closeSingle(event, at)
      line.push(...closed.splice(0))
    },
    lineUpAgain: (pages) => {
      for (const one of pages) {
        one.isHeld = true
        sealedBytes += one.bytes
        line.push(one)
      }
    },
    takeAlone: (event, at) => {
      closeSingle(event, at)
      const alone = closed.splice(0)
      letGo(alone)
      return alone[0] as Page
    },
    takeRest: () => {
      now = clock.monotonic()
      splitter.release(true)
      closePage('drain')
      const rest = closed.splice(0)
      letGo(rest)
      return rest
    },
    isAloft: () => aloft,
    waiting: () => line[0]?.trigger,
    openedAt: () => (isEmpty() ? undefined : since),
    openCount: () => pieces,
    held: {
      get count() {
        return line.length
      },
      get bytes() {
        return sealedBytes + page.bytes() + splitter.bytes()
      },
    },
  }
}
