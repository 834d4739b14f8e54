import type { Clock } from '../kernel/clock.ts'
import { QueueClosed } from './faults.ts'
import { type Channel, createChannel, stillHeld } from './local/channel.ts'
import { placeOf, timeOfPlace } from './local/place.ts'
import { decodeMessage, encodeMessage } from './message.ts'
import type { DeadLetter, Priority, Queue } from './port.ts'

export interface MemoryQueueOptions {
  /** How long a received message is hidden from other receivers. */
  readonly holdMs: number
}

const memoryQueueDefaults: MemoryQueueOptions = { holdMs: 60_000 }

export interface MemoryQueue extends Queue {
  /** Puts any body there, as somebody else who can reach the queue might. */
  inject(queue: string, priority: Priority, body: string): void
}

/** The oldest dead letters go when there are more than this in a queue. */
const deadLettersMax = 10_000

/** A queue in memory: the model that every other adapter is measured by. Gone when the process is. */
export const createMemoryQueue = (
  deps: { readonly clock: Clock },
  options: Partial<MemoryQueueOptions> = {},
): MemoryQueue => {
  const { holdMs } = { ...memoryQueueDefaults, ...options }
  const channels = new Map<string, Channel>()
  const dead = new Map<string, DeadLetter[]>()
  let stamps = 0
  let closed = false

  const check = () => {
    if (closed) throw new QueueClosed('the queue was closed')
  }
  const channelOf = (queue: string): Channel => {
    const channel = channels.get(queue) ?? createChannel(deps, queue, { holdMs, windowMax: Number.POSITIVE_INFINITY })
    channels.set(queue, channel)
    return channel
  }
  /** Each sending is a message of its own, as on any queue that does not look inside. */
  const put = (queue: string, priority: Priority, notBefore: number, jobId: string, body: string) => {
    stamps += 1
    const place = placeOf(notBefore, jobId, stamps)
    const channel = channelOf(queue)
    channel.put(priority, {
      place,
      notBefore: timeOfPlace(place),
      body,
      message: decodeMessage(body),
      stamp: stamps,
      receives: 0,
    })
    channel.wake()
  }

  return {
    inject: (queue, priority, body) => put(queue, priority, deps.clock.now(), '', body),
    send: async (outgoing) =>
      outgoing.map(({ message, notBefore }) => {
        if (closed) return new QueueClosed('the queue was closed')
        put(message.queue, message.priority, notBefore, message.jobId, encodeMessage(message))
        return undefined
      }),
    receive: async (queue, receiveOptions) => {
      check()
      return channelOf(queue).receive(receiveOptions)
    },
    extend: async (received, ms) => {
      check()
      for (const { queue, hold } of stillHeld(received)) channelOf(queue).extend(hold, ms)
    },
    finish: async (received) => {
      check()
      for (const { queue, hold } of stillHeld(received)) channelOf(queue).drop(hold)
    },
    release: async (received, delayMs) => {
      check()
      for (const { queue, hold } of stillHeld(received)) channelOf(queue).release(hold, delayMs)
    },
    deadLetter: async (received, reason) => {
      check()
      const letters = dead.get(received.queue) ?? []
      letters.push({ body: received.body, reason })
      if (letters.length > deadLettersMax) letters.shift()
      dead.set(received.queue, letters)
      for (const { queue, hold } of stillHeld([received])) channelOf(queue).drop(hold)
    },
    deadLetters: async (queue, limit) => {
      check()
      return (dead.get(queue) ?? []).slice(0, limit)
    },
    close: async () => {
      closed = true
      for (const channel of channels.values()) channel.close()
    },
  }
}
