// The messages of one queue and class that wait, and those in somebody's hands. Who gets one is the channel's business, when
// a hold ends is that of holds.ts.
// I1  Every message whose place is at most `upTo` is in `waiting` or in `held`. What lies beyond is only in the store.
// I2  A place is in `waiting` or in `held`, never in both.
// I3  `waiting` is never longer than the window.

import { assert } from '../../kernel/assert.ts'
import type { Message } from '../port.ts'
import { createSorted } from './sorted.ts'

export interface Entry {
  /** Where it stands: places sort as text by time, then by job. */
  readonly place: string
  /** Wall time before which nobody should have it. Earlier places are never later. */
  readonly notBefore: number
  readonly body: string
  /** What the body says; undefined if it is not one of ours. */
  readonly message: Message | undefined
  /** Tells two sendings to one place apart. */
  readonly stamp: number
  receives: number
}

/** One receive of one message. Its identity is the receipt: once it has ended, nothing can be done with it. */
export interface Hold {
  readonly backlog: Backlog
  /** The sending that was received; `entry` is a later one if the same place was sent to again meanwhile. */
  readonly stamp: number
  entry: Entry
  /** On the monotonic clock. */
  untilMs: number
  /** Tells holds apart that end at one time. */
  order: number
}

/** Some entries after a place, in order, at least one unless there is no more. */
export type ReadPage = (after: string) => Promise<{ readonly entries: readonly Entry[]; readonly more: boolean }>

export interface Backlog {
  /** `<queue>#<priority>` */
  readonly name: string
  first(): Entry | undefined
  /** Takes the first one into somebody's hands. */
  take(untilMs: number): Hold
  /** One was sent, or sent again. */
  put(entry: Entry): void
  /** One is gone from the store; the hold that ends with it, if there is one. */
  remove(place: string): Hold | undefined
  isHeld(hold: Hold): boolean
  /** Ends a hold: the message waits again, in its old place. */
  giveBack(hold: Hold): void
  /** Ends a hold and begins another on the same message: the old receipt is worth nothing any more. */
  renew(hold: Hold, untilMs: number): Hold
  /** Nothing is known to wait, but the store may have more: read a page before believing that it is empty. */
  isBlind(): boolean
  /** A page would be welcome. */
  isLow(): boolean
  /** Reads the next page. One at a time. */
  load(): Promise<void>
}

/** Something that compares like whatever stands there. */
const anyAt = (place: string): Entry => ({ place, notBefore: 0, body: '', message: undefined, stamp: 0, receives: 0 })

const byPlace = (a: Entry, b: Entry): number => (a.place < b.place ? -1 : a.place > b.place ? 1 : 0)

export const createBacklog = (name: string, windowMax: number, readPage?: ReadPage): Backlog => {
  const waiting = createSorted(byPlace)
  const held = new Map<string, Hold>()
  /** Undefined: everything is here. */
  let upTo: string | undefined = readPage ? '' : undefined
  /** What happened beyond `upTo` while a page was being read: it may be older or newer than the page, and it wins. */
  let meanwhile: Map<string, Entry | undefined> | undefined

  const isBeyond = (place: string) => upTo !== undefined && place > upTo
  const trim = () => {
    while (waiting.size > windowMax) {
      waiting.pop()
      upTo = waiting.last()?.place ?? ''
    }
  }
  const insert = (entry: Entry) => {
    if (isBeyond(entry.place)) return void meanwhile?.set(entry.place, entry)
    waiting.insert(entry)
    trim()
  }
  const end = (hold: Hold) => {
    assert(held.get(hold.entry.place) === hold, 'a hold ended twice')
    held.delete(hold.entry.place)
  }
  const hold = (entry: Entry, stamp: number, untilMs: number): Hold => {
    const fresh: Hold = { backlog, stamp, entry, untilMs, order: 0 }
    held.set(entry.place, fresh)
    return fresh
  }

  const backlog: Backlog = {
    name,
    first: () => waiting.first(),
    take: (untilMs) => {
      const entry = waiting.shift()
      assert(entry, 'took from an empty backlog')
      entry.receives += 1
      return hold(entry, entry.stamp, untilMs)
    },
    put: (entry) => {
      const inHands = held.get(entry.place)
      if (!inHands) insert(entry)
      else if (inHands.entry.stamp !== entry.stamp) inHands.entry = entry
    },
    remove: (place) => {
      const inHands = held.get(place)
      if (inHands) held.delete(place)
      else waiting.remove(anyAt(place))
      if (isBeyond(place)) meanwhile?.set(place, undefined)
      return inHands
    },
    isHeld: (candidate) => held.get(candidate.entry.place) === candidate,
    giveBack: (old) => {
      end(old)
      insert(old.entry)
    },
    renew: (old, untilMs) => {
      end(old)
      return hold(old.entry, old.stamp, untilMs)
    },
    isBlind: () => upTo !== undefined && waiting.size === 0,
    isLow: () => upTo !== undefined && waiting.size < windowMax / 4 && meanwhile === undefined,
    load: async () => {
      const from = upTo
      assert(readPage && from !== undefined && !meanwhile, 'nothing to read, or a page is being read')
      const changes = new Map<string, Entry | undefined>()
      meanwhile = changes
      let page: Awaited<ReturnType<ReadPage>>
      try {
        page = await readPage(from)
      } finally {
        // In the same turn as what follows: a change in between would be neither noted nor placed.
        meanwhile = undefined
      }
      // The window overflowed meanwhile: the page would leave a hole before it. It is read again when its time comes.
      if (upTo !== from) return
      for (const entry of page.entries) if (!changes.has(entry.place)) changes.set(entry.place, entry)
      upTo = page.more ? page.entries.at(-1)?.place : undefined
      for (const [place, entry] of changes) {
        if (entry && !isBeyond(place) && !held.has(place)) waiting.insert(entry)
      }
      trim()
    },
  }
  return backlog
}
