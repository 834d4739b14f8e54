import { type Clock, sleep } from '../kernel/clock.ts'
import { type QueueFault, QueueUnavailable } from '../queues/faults.ts'
import type { Outgoing, Queue, Received } from '../queues/port.ts'
import type { SeededRandom } from './seeded-random.ts'

/** How often each fault strikes, from 0 to 1. All are things that a queue service may do without breaking its promises. */
export interface QueueFaultRates {
  /** Sent, and reported as not sent. */
  readonly lostReply: number
  /** Not sent, and reported so. */
  readonly failed: number
  /** Reported as sent, and gone. */
  readonly lost: number
  /** Sent, but received up to `delayMsMax` later. */
  readonly delayed: number
  /** Received a second time while it is still in somebody's hands. */
  readonly duplicate: number
  /** A receive gives its messages in another order. */
  readonly reordered: number
  /** A receive gives nothing although something is there. */
  readonly emptyReceive: number
  /** The call fails; half of the time it has been done all the same. */
  readonly finishFails: number
  readonly releaseFails: number
  readonly extendFails: number
  readonly deadLetterFails: number
}

export type QueueFaultKind = keyof QueueFaultRates

export interface FaultyQueueOptions {
  readonly rates: Partial<QueueFaultRates>
  readonly delayMsMax: number
}

export interface FaultyQueue {
  readonly queue: Queue
  /** How often each fault has struck: a campaign in which one never did has proved nothing about it. */
  readonly counts: Readonly<Record<QueueFaultKind, number>>
  /** No fault from now on. */
  heal(): void
}

const kinds: readonly QueueFaultKind[] = [
  'lostReply',
  'failed',
  'lost',
  'delayed',
  'duplicate',
  'reordered',
  'emptyReceive',
  'finishFails',
  'releaseFails',
  'extendFails',
  'deadLetterFails',
]

/**
 * Any queue, with faults drawn from a seed. Each kind draws from a stream of its own, so that another rate here shifts nothing
 * there. What the queue offers as `within` passes untouched: it is part of the tables' transaction, and so are its faults.
 */
export const createFaultyQueue = (
  deps: { readonly queue: Queue; readonly clock: Clock; readonly random: SeededRandom },
  options: FaultyQueueOptions,
): FaultyQueue => {
  const { queue: inner, clock } = deps
  const streams = Object.fromEntries(kinds.map((kind) => [kind, deps.random.fork(kind)])) as Streams
  const counts = Object.fromEntries(kinds.map((kind) => [kind, 0])) as Record<QueueFaultKind, number>
  const copies = new Map<string, Received[]>()
  let healed = false

  const strikes = (kind: QueueFaultKind): boolean => {
    const rate = options.rates[kind] ?? 0
    if (healed || rate === 0 || streams[kind].next() >= rate) return false
    counts[kind] += 1
    return true
  }
  const late = (outgoing: Outgoing): Outgoing => {
    if (!strikes('delayed')) return outgoing
    const delayMs = Math.floor(streams.delayed.next() * options.delayMsMax)
    return { ...outgoing, notBefore: Math.max(clock.now(), outgoing.notBefore) + delayMs }
  }
  const sendOne = async (outgoing: Outgoing): Promise<QueueFault | undefined> => {
    if (strikes('failed')) return new QueueUnavailable('the queue was told to fail')
    if (strikes('lost')) return undefined
    const [fault] = await inner.send([late(outgoing)])
    return strikes('lostReply') ? new QueueUnavailable('the answer was lost') : fault
  }
  /** Keeps a copy of some, for the next receiver of that queue. */
  const copySome = (queue: string, received: readonly Received[]) => {
    for (const one of received) {
      if (strikes('duplicate'))
        copies.set(queue, [...(copies.get(queue) ?? []), { ...one, receives: one.receives + 1 }])
    }
  }
  const failing = async (kind: QueueFaultKind, work: () => Promise<void>): Promise<void> => {
    if (!strikes(kind)) return work()
    if (streams[kind].next() < 0.5) await work()
    throw new QueueUnavailable('the queue was told to fail')
  }

  const queue: Queue = {
    send: (outgoing) => Promise.all(outgoing.map(sendOne)),
    receive: async (name, ask) => {
      const again = copies.get(name)?.splice(0, ask.max) ?? []
      if (again.length > 0) return again
      if (strikes('emptyReceive')) {
        await sleep(clock, ask.waitMs, ask.signal)
        return []
      }
      const received = await inner.receive(name, ask)
      copySome(name, received)
      return received.length > 1 && strikes('reordered') ? shuffled(received, streams.reordered) : received
    },
    extend: (received, ms) => failing('extendFails', () => inner.extend(received, ms)),
    finish: (received) => failing('finishFails', () => inner.finish(received)),
    release: (received, delayMs) => failing('releaseFails', () => inner.release(received, delayMs)),
    deadLetter: (received, reason) => failing('deadLetterFails', () => inner.deadLetter(received, reason)),
    deadLetters: (name, limit) => inner.deadLetters(name, limit),
    ...(inner.within ? { within: inner.within } : {}),
    close: () => inner.close(),
  }
  return {
    queue,
    counts,
    heal: () => {
      healed = true
    },
  }
}

type Streams = Readonly<Record<QueueFaultKind, SeededRandom>>

const shuffled = <Thing>(things: readonly Thing[], random: SeededRandom): readonly Thing[] =>
  things
    .map((thing) => ({ thing, at: random.next() }))
    .sort((a, b) => a.at - b.at)
    .map(({ thing }) => thing)
