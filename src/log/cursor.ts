import type { Clock } from '../kernel/clock.ts'
import { eventTypes, type StoredItem } from './event.ts'
import type { Entry, Marker } from './follower.ts'
import { isOver } from './job-status.ts'
import type { Replay, Stored } from './replay.ts'
import type { Tail } from './tail.ts'

// The cursor: reads one attempt's log from a sequence on. Live is only a wake-up: what comes next is looked for among the newest
// items, and read from the store if it is not there.
//
// C1  What is handed on is dense: an item that begins beyond the next sequence is not passed while its attempt may still write.
// C2  When the attempt is over, the store is read once more; what is not there then is reported as missing.
// C3  What was there and has expired is reported as trimmed, at the head of the log only.

/** How the log of an attempt ended. */
export interface LogEnd {
  readonly lastSequence: number
  /** Whether its PROCESS_END is there. */
  readonly complete: boolean
}

export interface CursorDeps {
  readonly clock: Clock
  readonly replay: Replay
  readonly tail: Tail
  readonly log: string
  readonly attempt: number
  /** The most events of one item, as stored with the job. */
  readonly bound: number
  /** Where to begin; 1 is the beginning. */
  readonly fromSequence: number
  isCancelled(): boolean
  damaged(stored: Stored, reason: string): void
}

/** What a pass over the store came to. */
type Pass = 'ended' | 'gap' | 'end'

export interface Cursor {
  /** Everything that can be handed on just now. The end, if the log has ended; otherwise why it stopped. */
  read(): AsyncGenerator<Entry, LogEnd | Exclude<Pass, 'ended'>, void>
  /** The last sequence that was handed on or passed. */
  sequence(): number
  /** The version of the tail that the last read began with. */
  seen(): number
}

export const createCursor = (deps: CursorDeps): Cursor => {
  const { replay, tail, log, attempt, bound, clock } = deps
  let sequence = Math.max(1, deps.fromSequence) - 1
  // Whether an item ends at the cursor. One who begins within an item must look for where that item begins.
  let isAligned = sequence === 0
  let seen = -1

  const mark = (marker: Marker): Entry => ({ attempt, marker })

  const pass = (item: StoredItem): Entry => {
    sequence = item.endSequence
    isAligned = true
    return { attempt, item }
  }

  const passStored = (stored: Stored): Entry => {
    if ('item' in stored.content) return pass(stored.content.item)
    const reason = stored.content.damage
    deps.damaged(stored, reason)
    sequence = stored.endSequence
    isAligned = true
    return mark({ kind: 'damaged', from: stored.sequence, to: stored.endSequence, reason })
  }

  const gapBefore = async (stored: Stored, over: boolean): Promise<Marker | undefined> => {
    if (await isTrimmedBefore(stored)) return { kind: 'trimmed', before: stored.sequence }
    return over ? { kind: 'missing', from: sequence + 1, to: stored.sequence - 1 } : undefined
  }

  /** C3: nothing is left in front of it, and it is old itself or what was in front of it can still be seen to have expired. */
  const isTrimmedBefore = async (stored: Stored): Promise<boolean> => {
    const head = await replay.head(log, bound)
    if (head.first?.sequence !== stored.sequence) return false
    const { timestamp, ttl } = stored
    const lifeMs = ttl * 1_000 - timestamp
    return head.hasExpired || (Number.isFinite(lifeMs) && clock.now() - timestamp >= lifeMs / 2)
  }

  async function* readStored(over: boolean): AsyncGenerator<Entry, Pass, void> {
    if (!isAligned) {
      const found = await replay.find(log, sequence + 1, bound)
      if (found !== undefined && found.endSequence > sequence) {
        yield passStored(found)
        if (isEnd(found)) return 'ended'
      } else if (!over) return 'end'
    }
    for await (const page of replay.pages(log, sequence + 1, bound)) {
      for (const stored of page) {
        if (deps.isCancelled()) return 'end'
        if (stored.sequence <= sequence) continue
        if (stored.sequence > sequence + 1) {
          const marker = await gapBefore(stored, over)
          if (marker === undefined) return 'gap'
          sequence = stored.sequence - 1
          yield mark(marker)
        }
        yield passStored(stored)
        if (isEnd(stored)) return 'ended'
      }
    }
    return 'end'
  }

  async function* read(): AsyncGenerator<Entry, LogEnd | Exclude<Pass, 'ended'>, void> {
    for (;;) {
      seen = tail.version()
      // Before the read: what was written while the attempt was alive is there when the read begins.
      const status = tail.status()
      const over = status !== undefined && isOver(status, attempt)
      const item = deps.isCancelled() ? undefined : tail.find(sequence + 1)
      if (item !== undefined) {
        yield pass(item)
        if (item.type === eventTypes.processEnd) return { lastSequence: sequence, complete: true }
        continue
      }
      if (deps.isCancelled() || (!over && isAligned && tail.isAtEnd(sequence))) return 'end'
      const before = sequence
      const outcome = yield* readStored(over)
      if (outcome === 'ended') return { lastSequence: sequence, complete: true }
      if (isAligned && outcome === 'end') tail.reached(sequence)
      if (sequence > before || deps.isCancelled()) continue
      return over ? await endOf() : outcome
    }
  }

  const endOf = async (): Promise<LogEnd> => {
    const last = await replay.last(log, bound)
    return { lastSequence: last?.endSequence ?? 0, complete: last !== undefined && isEnd(last) }
  }

  return { read, sequence: () => sequence, seen: () => seen }
}

const isEnd = ({ content }: Stored): boolean => 'item' in content && content.item.type === eventTypes.processEnd
