import type { Clock } from '../../kernel/clock.ts'
import { isFault } from '../../kernel/fault.ts'
import type { Random } from '../../kernel/random.ts'
import type { Action, Key, Row, TableSchema, Tables } from '../../tables/port.ts'
import { QueueClosed, QueueFault, QueueRefused, QueueThrottled, QueueUnavailable } from '../faults.ts'
import type { Entry, Hold, ReadPage } from '../local/backlog.ts'
import { backlogName } from '../local/channel.ts'
import { partsOfPlace, placeOf, timeOfPlace } from '../local/place.ts'
import { assertMessage, bodyOf, decodeMessage, isMessage } from '../message.ts'
import type { DeadLetter, Message, Outgoing, Received } from '../port.ts'

/**
 * `channel` is `<queue>#<priority>`, or `<queue>#dead`; `place` sorts by time, then by job and attempt. Together they say all
 * that a message says, so a row has a body only if it is a dead letter, or if somebody else put it there.
 */
export const queueTable: TableSchema = {
  name: 'queue',
  partition: 'channel',
  sort: { attribute: 'place', type: 'string' },
  ttl: 'ttl',
  indexes: {},
}

/** Dead letters are kept as long as the longest that queue services keep anything. */
const deadLetterSeconds = 14 * 86_400
const pageMax = 1_000

/**
 * Numbers that no earlier sending to the same place has had. They start anywhere, because rows of an earlier process are
 * still there.
 */
export const createStamps = (deps: { readonly clock: Clock; readonly random?: Random }): (() => number) => {
  let stamp = deps.random ? Math.floor(deps.random.next() * 2 ** 32) * 2 ** 20 : deps.clock.now() * 1_024
  return () => ++stamp
}

export const rowOf = (outgoing: Outgoing, stamp: number): Row => {
  assertMessage(outgoing.message)
  const [channel, place] = keyOfSent(outgoing)
  return {
    channel,
    place,
    stamp,
  }
}

/** The other way. Anything in a row may be missing if somebody else wrote it. */
export const entryOf = (row: Row): Entry => {
  const place = String(row['place'])
  const stamp = Number(row['stamp'] ?? 0)
  const given = row['body']
  const message = given === undefined ? messageAt(String(row['channel']), place) : decodeMessage(String(given))
  const body = given === undefined ? (message ? bodyOf(message) : '') : String(given)
  return { place, notBefore: timeOfPlace(place), body, message, stamp, receives: 0 }
}

/** What a row says by where it stands. */
const messageAt = (channel: string, place: string): Message | undefined => {
  const parts = partsOfPlace(place)
  const end = channel.lastIndexOf('#')
  if (!parts) return undefined
  const message = {
    jobId: parts.jobId,
    queue: channel.slice(0, end),
    priority: channel.slice(end + 1),
    attempt: parts.tail,
  }
  return isMessage(message) ? message : undefined
}

export const keyOf = (hold: Hold): Key => [hold.backlog.name, hold.entry.place]

export const keyOfSent = ({ message, notBefore }: Outgoing): readonly [string, string] => [
  backlogName(message.queue, message.priority),
  placeOf(notBefore, message.jobId, message.attempt),
]

/** Deletes the sending that was received, and no later one to the same place. */
export const deletionOf = (hold: Hold): Action => ({
  kind: 'delete',
  table: queueTable.name,
  key: keyOf(hold),
  if: hold.stamp === 0 ? { test: 'lacks', attribute: 'stamp' } : { test: '=', attribute: 'stamp', value: hold.stamp },
})

/** Pages of one backlog. Reads on while a page has nothing new in it, so that an empty answer means the end. */
export const readPages =
  (tables: Tables, partition: string): ReadPage =>
  async (after) => {
    try {
      let cursor: string | undefined
      for (;;) {
        const range = { partition, ...(after ? { from: after } : {}), limit: pageMax }
        const page = await tables.query(queueTable.name, cursor ? { ...range, after: cursor } : range)
        const entries = page.entries.map(entryOf).filter((entry) => entry.place > after)
        if (entries.length > 0 || page.next === undefined) return { entries, more: page.next !== undefined }
        cursor = page.next
      }
    } catch (error) {
      throw queueFaultOf(error)
    }
  }

export const deadRow = (received: Received, reason: string, now: number, stamp: number): Row => ({
  channel: `${received.queue}#dead`,
  place: placeOf(now, stamp.toString().padStart(16, '0'), 0),
  body: received.body,
  reason,
  ttl: Math.floor(now / 1_000) + deadLetterSeconds,
})

export const readDeadLetters = async (
  tables: Tables,
  queue: string,
  limit: number,
  now: number,
): Promise<readonly DeadLetter[]> => {
  // Places begin with the time of death, so what has expired and is not yet purged is simply not asked for.
  const range = { partition: `${queue}#dead`, from: placeOf(now - deadLetterSeconds * 1_000, '', 0), limit }
  try {
    const page = await tables.query(queueTable.name, range)
    return page.entries.map((row) => ({ body: String(row['body']), reason: String(row['reason']) }))
  } catch (error) {
    throw queueFaultOf(error)
  }
}

/** The storage's fault in the words of a queue. What is not a fault is a bug and is thrown as it is. */
export const queueFaultOf = (error: unknown): QueueFault => {
  if (error instanceof QueueFault) return error
  if (!isFault(error)) throw error
  if (error.code === 'TABLE_CLOSED') return new QueueClosed('the tables below the queue were closed', { cause: error })
  if (error.code === 'TABLE_THROTTLED')
    return new QueueThrottled('the tables below the queue refused', { cause: error })
  const Kind = error.retry === 'later' ? QueueUnavailable : QueueRefused
  return new Kind(`the tables below the queue failed: ${error.message}`, { cause: error })
}
