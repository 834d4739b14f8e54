import { crc32 } from 'node:zlib'
import type { Clock } from '../kernel/clock.ts'
import type { Range, Row, Tables } from '../tables/port.ts'
import type { StoredItem } from './event.ts'
import { eventsTable, itemOf } from './keys.ts'

// Replay: from a sequence or a time to the stored items of one log. Every read is strong. What has expired is not there, whether
// or not somebody has deleted it yet.

/** What stands at a place of a log. */
export interface Stored {
  readonly sequence: number
  /** Where the end of a row cannot be read, it stands for one event. */
  readonly endSequence: number
  /** Wall time of its first event; for ever in the future where that cannot be read. */
  readonly timestamp: number
  /** The second after which it is not there any more. */
  readonly ttl: number
  readonly content: { readonly item: StoredItem } | { readonly damage: string }
}

export interface Replay {
  /** What contains the sequence, or comes last before it; `bound` is the one stored with the job. One read. */
  find(log: string, sequence: number, bound: number): Promise<Stored | undefined>
  /** What begins at the sequence or behind it, in pages. The next page is on its way while one is being used. */
  pages(log: string, fromSequence: number, bound: number): AsyncGenerator<readonly Stored[], void, void>
  /** The end of the log as it is now. */
  last(log: string, bound: number): Promise<Stored | undefined>
  /** The beginning of what is left of the log, and whether something before it can be seen to have expired. */
  head(log: string, bound: number): Promise<{ readonly first: Stored | undefined; readonly hasExpired: boolean }>
  /** Where to begin for everything that happened from a time on. As many reads as halving the log takes. */
  sequenceAt(log: string, timestamp: number, bound: number): Promise<number>
}

/** The first sequence that a batch with the given one in it can begin with. */
export const minBatchSequence = (sequence: number, bound: number): number => Math.max(1, sequence - bound + 1)

/** Few enough that two pages of the largest items are no burden. */
const pageItems = 16

export const createReplay = (deps: { readonly tables: Pick<Tables, 'query'>; readonly clock: Clock }): Replay => {
  const { tables, clock } = deps

  const query = async (log: string, bound: number, range: Omit<Range, 'partition'>): Promise<StoredPage> => {
    const { entries, next } = await tables.query(eventsTable.name, { partition: log, ...range })
    const nowSeconds = Math.floor(clock.now() / 1_000)
    const found = entries.filter((row) => ttlOf(row) >= nowSeconds).map((row) => storedOf(row, bound))
    return { found, next, hasExpired: found.length < entries.length }
  }

  /** The last one within the range; what expired is a prefix of a log, so nothing is in front of one that has. */
  const lastWithin = async (log: string, bound: number, range: { from?: number; to?: number }) =>
    (await query(log, bound, { ...range, descending: true, limit: 1 })).found[0]

  async function* pages(log: string, from: number, bound: number): AsyncGenerator<readonly Stored[], void, void> {
    let page = await query(log, bound, { from, limit: pageItems })
    for (;;) {
      const { next } = page
      const coming = next === undefined ? undefined : query(log, bound, { from, after: next, limit: pageItems })
      // Somebody may stop reading before it is looked at.
      coming?.catch(() => {})
      if (page.found.length > 0) yield page.found
      if (coming === undefined) return
      page = await coming
    }
  }

  return {
    find: (log, sequence, bound) => lastWithin(log, bound, { from: minBatchSequence(sequence, bound), to: sequence }),
    pages,
    last: (log, bound) => lastWithin(log, bound, {}),
    head: async (log, bound) => {
      let hasExpired = false
      let page = await query(log, bound, { limit: 1 })
      for (;;) {
        hasExpired ||= page.hasExpired
        if (page.found[0] !== undefined || page.next === undefined) return { first: page.found[0], hasExpired }
        page = await query(log, bound, { after: page.next, limit: pageItems })
      }
    },
    sequenceAt: async (log, timestamp, bound) => {
      const last = await lastWithin(log, bound, {})
      if (last === undefined) return 1
      // Everything before `low` happened earlier; what begins at `high` or behind it did not.
      let low = 1
      let high = last.endSequence + 1
      let start = 1
      while (low < high) {
        const middle = Math.floor((low + high) / 2)
        const at = await lastWithin(log, bound, { from: low, to: middle })
        const isEarlier = at === undefined || at.timestamp < timestamp
        if (!isEarlier) high = at.sequence
        else {
          // A batch that began earlier may still reach into the time that was asked for.
          if (at !== undefined) start = at.sequence
          low = Math.max(middle, at?.endSequence ?? 0) + 1
        }
      }
      return start
    },
  }
}

interface StoredPage {
  readonly found: readonly Stored[]
  readonly next: string | undefined
  readonly hasExpired: boolean
}

const ttlOf = (row: Row): number => {
  const ttl = row['ttl']
  return typeof ttl === 'number' ? ttl : Number.POSITIVE_INFINITY
}

/** An item that passes its checks, or what is wrong with the row. */
const storedOf = (row: Row, bound: number): Stored => {
  const [key, time] = [row['sequence'], row['timestamp']]
  const sequence = typeof key === 'number' ? key : 0
  const timestamp = typeof time === 'number' ? time : Number.POSITIVE_INFINITY
  const damaged = (damage: string, endSequence = sequence): Stored => ({
    sequence,
    endSequence,
    timestamp,
    ttl: ttlOf(row),
    content: { damage },
  })
  const item = itemOf(row)
  if (item === undefined) return damaged('the row is no stored item')
  // A range that nobody may have written would hide everything behind it.
  if (item.endSequence - sequence >= bound) return damaged(`more than ${bound} events in one item`)
  if (crc32(item.payload) !== item.crc) return damaged('the checksum does not fit', item.endSequence)
  return { sequence, endSequence: item.endSequence, timestamp, ttl: ttlOf(row), content: { item } }
}
