// What a reader of one attempt's log has at hand: items as they came, still packed, in a ring with a byte budget. Reading does
// not take them away, so one can go back; when the budget is used up, what was read longest ago leaves first.
//   I1  events come out in order of their sequences, each once between two rewinds.
//   I2  what was not read yet never leaves, whatever the budget says: `add` tells when to stop adding.
//   I3  everything from `heldFrom` on that was ever added is still here; going back further asks for it again.

import type { StoredItem } from '../log/event.ts'

/** Any event that knows its place; its output, if it has one, is what it weighs. */
export interface Placed {
  readonly sequence: number
  readonly output?: Uint8Array
}

export interface EventBufferDeps<Event extends Placed> {
  /** The events of an item from a sequence on. */
  readonly unpack: (item: StoredItem, fromSequence: number) => Iterable<Event>
  /** Called when a rewind goes back beyond what is held: everything from that sequence on is to be added again. */
  readonly requery: (fromSequence: number) => void
}

export interface EventBufferOptions {
  readonly budgetBytes: number
  /** Events before it are left out. */
  readonly fromSequence?: number
}

export interface EventBuffer<Event extends Placed> {
  /** Takes an item or a single event; what was added before is ignored. Whether there is room for more. */
  add(entry: StoredItem | Event): boolean
  /** The next event; undefined if it is not here yet. */
  next(): Event | undefined
  /** The next event will be that one, or the first after it. Whether it was held. */
  rewind(toSequence: number): boolean
  readonly heldBytes: number
}

interface Held<Event> {
  readonly first: number
  readonly last: number
  readonly bytes: number
  readonly unpacked: (fromSequence: number) => Iterable<Event>
}

/** What an entry weighs besides its bytes. */
const entryBytes = 64

export const createEventBuffer = <Event extends Placed>(
  { unpack, requery }: EventBufferDeps<Event>,
  { budgetBytes, fromSequence = 1 }: EventBufferOptions,
): EventBuffer<Event> => {
  let held: Held<Event>[] = []
  let heldBytes = 0
  let unreadBytes = 0
  let heldFrom = fromSequence
  let highest = fromSequence - 1
  let wanted = fromSequence
  /** The place in `held` that is being read, and what is left of it. */
  let place = 0
  let reading: Iterator<Event> | undefined

  /** The oldest leave, as far as they were read. */
  const keepBudget = () => {
    let leaving = 0
    while (heldBytes > budgetBytes && leaving < place) {
      const oldest = held[leaving] as Held<Event>
      heldBytes -= oldest.bytes
      heldFrom = oldest.last + 1
      leaving += 1
    }
    if (leaving === 0) return
    held = held.slice(leaving)
    place -= leaving
  }

  const startAt = (sequence: number) => {
    wanted = sequence
    reading = undefined
    place = held.findIndex(({ last }) => last >= sequence)
    if (place === -1) place = held.length
    unreadBytes = held.slice(place).reduce((sum, { bytes }) => sum + bytes, 0)
  }

  return {
    add: (entry) => {
      const last = 'endSequence' in entry ? entry.endSequence : entry.sequence
      if (last > highest) {
        const one = holdOf(entry, Math.max(entry.sequence, highest + 1), unpack)
        held.push(one)
        heldBytes += one.bytes
        unreadBytes += one.bytes
        highest = last
        keepBudget()
      }
      return unreadBytes < budgetBytes
    },
    next: () => {
      for (let at = held[place]; at; at = held[place]) {
        reading ??= at.unpacked(Math.max(at.first, wanted))[Symbol.iterator]()
        const { done, value } = reading.next()
        if (!done) {
          wanted = value.sequence + 1
          return value
        }
        reading = undefined
        wanted = at.last + 1
        unreadBytes -= at.bytes
        place += 1
        keepBudget()
      }
      return undefined
    },
    rewind: (sequence) => {
      const toSequence = Math.max(1, sequence)
      const isHeld = toSequence >= heldFrom && toSequence <= highest + 1
      if (isHeld) startAt(toSequence)
      else {
        held = []
        heldBytes = 0
        heldFrom = toSequence
        highest = toSequence - 1
        startAt(toSequence)
        requery(toSequence)
      }
      return isHeld
    },
    get heldBytes() {
      return heldBytes
    },
  }
}

const holdOf = <Event extends Placed>(
  entry: StoredItem | Event,
  first: number,
  unpack: EventBufferDeps<Event>['unpack'],
): Held<Event> => {
  if (!('endSequence' in entry)) {
    const bytes = entryBytes + (entry.output?.length ?? 0)
    return { first, last: entry.sequence, bytes, unpacked: () => [entry] }
  }
  const item = { ...entry, payload: ownBytes(entry.payload) }
  const bytes = entryBytes + item.payload.length
  return { first, last: item.endSequence, bytes, unpacked: (from) => unpack(item, from) }
}

/** A small view of a large buffer would keep the whole of it in memory, unseen by any budget. */
const ownBytes = (bytes: Uint8Array): Uint8Array =>
  bytes.buffer.byteLength > 2 * bytes.length + entryBytes ? bytes.slice() : bytes
