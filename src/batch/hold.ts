import type { Trigger } from '../../machines/batch-buffer.ts'
import { assert } from '../kernel/assert.ts'
import type { Clock } from '../kernel/clock.ts'
import type { BatchLimits } from './limits.ts'

// What a batcher holds: the open batch, the sealed ones in line behind the flight, and the sums. Arithmetic only: it never
// waits and knows no machine. The driver (batcher.ts, flights.ts) says when a batch departs and when it was released.
//
// H1  No batch passes count or bytes, but for one item alone that is larger than bytes (law B5).
// H2  What was taken in and not released is held (law B3). A batch is opened only if it fits in below the marks when full, so
//     the marks are looked at once per batch and never passed (law B4).
// H3  Items leave in the order they came, batches in the order they were sealed.

/** A batch that is complete. */
export interface Sealed<Item> {
  readonly items: readonly Item[]
  readonly bytes: number
  readonly trigger: Trigger
}

/** What the hold must know about an item. */
export interface ItemRules<Item> {
  /** Pure: the same item has the same size each time. */
  sizeOf(item: Item): number
  /** An item whose key is that of an item in the open batch is folded into it instead of being added. */
  readonly merge?: {
    key(item: Item): string | undefined
    fold(earlier: Item, later: Item): Item
  }
}

/** The two ends of a promise somebody waits for. */
export interface Promised {
  resolve(): void
  reject(cause: unknown): void
}

/** A sealed batch on its way out. */
export interface Batch<Item> {
  readonly sealed: Sealed<Item>
  /** When its oldest item came. */
  readonly since: number
  readonly barrier: Promised | undefined
}

/** The sums over everything that is held: open, in line and in flight. */
export interface Held {
  readonly count: number
  readonly bytes: number
}

/** `joined`: the item is in the open batch and nothing else has changed. `notable`: a batch was opened or sealed. */
export type Admission = 'no room' | 'joined' | 'notable'

/** `Out` is what its batches are made of, where that is not the items themselves. */
export interface Hold<Item, Out = Item> {
  /** Takes the item in, unless that could pass a high-water mark. */
  offer(item: Item, size: number): Admission
  /** The same for an item that travels alone, behind everything that came before it (law B6). */
  offerAlone(item: Item, size: number, barrier: Promised): boolean
  /** Closes the open batch. An empty one is left alone (law B8). */
  seal(trigger: Trigger): void
  /** The open batch is to be sealed as soon as nothing is in flight. */
  ask(): void
  sealIfAsked(): void
  /** Takes the first sealed batch out of the line. It stays held until it is released. */
  depart(): Batch<Out>
  release(batch: Batch<Out>): void
  /** Lets go of everything, and gives what has not departed, in order. */
  abandon(): readonly Batch<Out>[]
  /** The trigger of the first sealed batch in line. */
  waiting(): Trigger | undefined
  /** When the first item of the open batch came, if there is one. */
  openedAt(): number | undefined
  /** How many items have come into the open batch. */
  openCount(): number
  /** A live view, in an object of its own: getters beside the verbs would make every call of a verb slow. */
  readonly held: Held
}

export const createHold = <Item>(clock: Clock, limits: BatchLimits, rules: ItemRules<Item>): Hold<Item> => {
  const { merge } = rules
  const { count: countMax, bytes: bytesMax, heldCount: heldCountMax, heldBytes: heldBytesMax } = limits
  // The open batch.
  let items: Item[] = []
  let bytes = 0
  let since = 0
  let asked = false
  // How many items may join the open batch without a further thought: not the one that fills it, and none that may be folded.
  let spare = 0
  const places = new Map<string, number>()
  // The sealed ones: in line, and in flight.
  const line: Batch<Item>[] = []
  let sealedCount = 0
  let sealedBytes = 0

  const seal = (trigger: Trigger, barrier?: Promised): void => {
    if (items.length === 0) return
    line.push({ sealed: { items, bytes, trigger }, since, barrier })
    sealedCount += items.length
    sealedBytes += bytes
    items = []
    bytes = 0
    asked = false
    spare = 0
    if (merge !== undefined) places.clear()
  }

  /** Whether a full batch more fits in below the marks; then so does whatever the next batch comes to hold. */
  const hasRoom = (size: number): boolean => {
    const count = sealedCount + items.length
    const most = sealedBytes + bytes + Math.max(size, bytesMax)
    // An item larger than the mark would wait for ever: it comes in when nothing else is held.
    return (count + countMax <= heldCountMax && most <= heldBytesMax) || count === 0
  }

  const open = (item: Item, size: number): void => {
    items = [item]
    bytes = size
    spare = merge === undefined ? countMax - 2 : 0
    since = clock.monotonic()
  }

  const sealIfFull = (): boolean => {
    if (items.length >= countMax) seal('count')
    else if (bytes >= bytesMax) seal('bytes')
    else return false
    return true
  }

  /** False if there is nothing to fold into, or if the outcome would not fit: then the later item comes behind. */
  const folds = (item: Item, key: string): boolean => {
    const place = places.get(key)
    if (merge === undefined || place === undefined) return false
    const earlier = items[place] as Item
    const merged = merge.fold(earlier, item)
    const growth = checkedSize(rules, merged) - rules.sizeOf(earlier)
    if (bytes + growth > bytesMax) return false
    items[place] = merged
    bytes += growth
    return true
  }

  const admit = (item: Item, size: number): Admission => {
    const key = merge?.key(item)
    if (key !== undefined && folds(item, key)) return sealIfFull() ? 'notable' : 'joined'
    const begins = items.length === 0 || bytes + size > bytesMax
    if (begins) {
      if (!hasRoom(size)) return 'no room'
      seal('bytes')
      open(item, size)
    } else {
      items.push(item)
      bytes += size
    }
    if (key !== undefined) places.set(key, items.length - 1)
    return sealIfFull() || begins ? 'notable' : 'joined'
  }

  return {
    offer: (item, size) => {
      if (spare <= 0 || bytes + size >= bytesMax) return admit(item, size)
      spare -= 1
      bytes += size
      items.push(item)
      return 'joined'
    },
    offerAlone: (item, size, barrier) => {
      if (!hasRoom(size)) return false
      seal('barrier')
      open(item, size)
      seal('barrier', barrier)
      return true
    },
    seal,
    ask: () => {
      asked = items.length > 0
    },
    sealIfAsked: () => {
      if (asked) seal('asked')
    },
    depart: () => {
      const batch = line.shift()
      assert(batch, 'a flight without a sealed batch')
      return batch
    },
    release: ({ sealed }) => {
      sealedCount -= sealed.items.length
      sealedBytes -= sealed.bytes
    },
    abandon: () => {
      seal('drain')
      sealedCount = 0
      sealedBytes = 0
      return line.splice(0)
    },
    waiting: () => (line.length === 0 ? undefined : line[0]?.sealed.trigger),
    openedAt: () => (items.length === 0 ? undefined : since),
    openCount: () => items.length,
    held: {
      get count() {
        return sealedCount + items.length
      },
      get bytes() {
        return sealedBytes + bytes
      },
    },
  }
}

/** A size that is not a number would switch the limits off without a sound. */
export const checkedSize = <Item>(rules: Pick<ItemRules<Item>, 'sizeOf'>, item: Item): number => {
  const size = rules.sizeOf(item)
  // The sentence is made only when it is needed: this runs once per item.
  if (!(size >= 0 && size < Number.POSITIVE_INFINITY)) assert(false, `an item of ${size} bytes`)
  return size
}
