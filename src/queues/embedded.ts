// The queue of the embedded profile: rows in the tables of this process, woken by their commits.
// I1  The row is the message: sent when it is committed, gone when it is deleted, by whatever transaction.
// I2  A hold lives in memory only. After a restart everything that was not finished is visible again.
// I3  A receive that finds a message in the window does not read the store.

import type { Clock } from '../kernel/clock.ts'
import type { Random } from '../kernel/random.ts'
import type { Action, Change, LocalTables, Verdict } from '../tables/port.ts'
import {
  createStamps,
  deadRow,
  deletionOf,
  entryOf,
  keyOf,
  keyOfSent,
  queueFaultOf,
  queueTable,
  readDeadLetters,
  readPages,
  rowOf,
} from './embedded/rows.ts'
import { QueueClosed } from './faults.ts'
import type { Hold } from './local/backlog.ts'
import { backlogName, type Channel, createChannel, stillHeld } from './local/channel.ts'
import { type Priority, priorities, type Queue, type Within } from './port.ts'

export { queueTable }

export interface EmbeddedQueueOptions {
  /** How long a received message is hidden from other receivers. */
  readonly holdMs: number
  /** How many messages of a class are kept in memory; the others wait in the store. */
  readonly windowMax: number
}

const embeddedQueueDefaults: EmbeddedQueueOptions = { holdMs: 60_000, windowMax: 10_000 }

export interface EmbeddedQueue extends Queue {
  readonly within: Within
}

type Classes = Map<string, { readonly channel: Channel; readonly priority: Priority }>

export const createEmbeddedQueue = (
  deps: { readonly tables: LocalTables; readonly clock: Clock; readonly random?: Random },
  options: Partial<EmbeddedQueueOptions> = {},
): EmbeddedQueue => {
  const { tables, clock } = deps
  const settings = { ...embeddedQueueDefaults, ...options }
  const channels = new Map<string, Channel>()
  const classes: Classes = new Map()
  const nextStamp = createStamps(deps)
  let closed = false

  const check = () => {
    if (closed) throw new QueueClosed('the queue was closed')
  }
  const unwatch = tables.watch(queueTable.name, (changes) => {
    for (const channel of apply(classes, changes)) channel.wake()
  })
  /** A queue is followed from its first receive on; until then its rows simply lie in the store. */
  const channelOf = (queue: string): Channel => {
    const known = channels.get(queue)
    if (known) return known
    const readPage = (priority: Priority) => readPages(tables, backlogName(queue, priority))
    const channel = createChannel({ clock, readPage }, queue, settings)
    channels.set(queue, channel)
    for (const priority of priorities) classes.set(backlogName(queue, priority), { channel, priority })
    return channel
  }
  const commit = async (writes: readonly (readonly Action[])[]): Promise<readonly Verdict[]> => {
    check()
    if (writes.length === 0) return []
    try {
      return await tables.commit(writes.map((actions) => ({ actions })))
    } catch (error) {
      throw queueFaultOf(error)
    }
  }

  const within: Within = {
    send: (outgoing) => ({ kind: 'put', table: queueTable.name, row: rowOf(outgoing, nextStamp()), keep: true }),
    // Without a condition, because a message must never decide about a claim. It takes a second sending to the same place
    // with it, and that is right: the claim it travels with has answered both.
    finish: (received) => ({ kind: 'delete', table: queueTable.name, key: keyOf(received.receipt as Hold) }),
    withdraw: (outgoing) => ({ kind: 'delete', table: queueTable.name, key: keyOfSent(outgoing) }),
  }

  return {
    within,
    send: async (outgoing) => {
      try {
        const verdicts = await commit(outgoing.map((one) => [within.send(one)]))
        return verdicts.map((verdict) => (verdict.kind === 'failed' ? queueFaultOf(verdict.fault) : undefined))
      } catch (error) {
        const fault = queueFaultOf(error)
        return outgoing.map(() => fault)
      }
    },
    receive: async (queue, receiveOptions) => {
      check()
      return channelOf(queue).receive(receiveOptions)
    },
    extend: async (received, ms) => {
      check()
      for (const { queue, hold } of stillHeld(received)) channelOf(queue).extend(hold, ms)
    },
    finish: async (received) => {
      const held = stillHeld(received)
      const verdicts = await commit(held.map(({ hold }) => [deletionOf(hold)]))
      held.forEach(({ queue, hold }, index) => {
        settle(channelOf(queue), hold, verdicts[index] as Verdict)
      })
      for (const verdict of verdicts) if (verdict.kind === 'failed') throw queueFaultOf(verdict.fault)
    },
    release: async (received, delayMs) => {
      check()
      for (const { queue, hold } of stillHeld(received)) channelOf(queue).release(hold, delayMs)
    },
    deadLetter: async (received, reason) => {
      const letter = deadRow(received, reason, clock.now(), nextStamp())
      const put: Action = { kind: 'put', table: queueTable.name, row: letter }
      const isOurs = stillHeld([received]).length > 0
      const [verdict] = await commit([isOurs ? [put, within.finish(received)] : [put]])
      if (verdict?.kind === 'failed') throw queueFaultOf(verdict.fault)
    },
    deadLetters: async (queue, limit) => {
      check()
      return readDeadLetters(tables, queue, limit, clock.now())
    },
    close: async () => {
      closed = true
      unwatch()
      for (const channel of channels.values()) channel.close()
    },
  }
}

/** Tells the channels what happened; those that it happened to. */
const apply = (classes: Classes, changes: readonly Change[]): ReadonlySet<Channel> => {
  const touched = new Set<Channel>()
  for (const { key, row } of changes) {
    const found = classes.get(key[0])
    if (!found) continue
    if (row) found.channel.put(found.priority, entryOf(row))
    else found.channel.remove(found.priority, String(key[1]))
    touched.add(found.channel)
  }
  return touched
}

/** What a deletion that was asked for means for the hold; the commit itself has mostly told the channel already. */
const settle = (channel: Channel, hold: Hold, verdict: Verdict): void => {
  if (verdict.kind === 'failed' || !hold.backlog.isHeld(hold)) return
  // Refused with a row: it was sent again while it was held. That sending is another message and has to be seen.
  if (verdict.kind === 'refused' && verdict.row) channel.release(hold, 0)
  else channel.drop(hold)
}
