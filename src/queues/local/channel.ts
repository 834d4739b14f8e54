import type { Clock, Timer } from '../../kernel/clock.ts'
import { type Priority, priorities, type Received, type ReceiveOptions } from '../port.ts'
import { createTurns } from '../turns.ts'
import { type Backlog, createBacklog, type Entry, type Hold, type ReadPage } from './backlog.ts'
import { createHolds } from './holds.ts'

export interface ChannelOptions {
  /** How long a received message is hidden from other receivers. */
  readonly holdMs: number
  /** How many messages of a class are kept in memory; the others wait in the store. */
  readonly windowMax: number
}

/** One queue in this process: three backlogs, and the receivers that wait for them in order. */
export interface Channel {
  /** Tell it of every change in the store, then `wake` it once. */
  put(priority: Priority, entry: Entry): void
  remove(priority: Priority, place: string): void
  wake(): void
  receive(options: ReceiveOptions): Promise<readonly Received[]>
  extend(hold: Hold, ms: number): void
  release(hold: Hold, delayMs: number): void
  /** The message is gone for good. */
  drop(hold: Hold): void
  /** Ends every receive with nothing and forgets every hold. */
  close(): void
}

interface Waiter {
  readonly max: number
  /** It does not wait for messages, only for what is being read from the store. */
  readonly atOnce: boolean
  end(received: readonly Received[]): void
  fail(error: unknown): void
}

/** A wall clock that was set forward is noticed after this long. */
const timerMsMax = 60_000

export const createChannel = (
  deps: { readonly clock: Clock; readonly readPage?: (priority: Priority) => ReadPage },
  queue: string,
  options: ChannelOptions,
): Channel => {
  const { clock } = deps
  const backlogs = Object.fromEntries(
    priorities.map((priority) => [
      priority,
      createBacklog(backlogName(queue, priority), options.windowMax, deps.readPage?.(priority)),
    ]),
  ) as Record<Priority, Backlog>
  const all = Object.values(backlogs)
  const turns = createTurns()
  const waiters = new Set<Waiter>()
  const holds = createHolds(clock, (ended) => {
    for (const hold of ended) hold.backlog.giveBack(hold)
    wake()
  })
  let timer: Timer

  const take = (max: number): readonly Received[] => {
    const taken: Received[] = []
    const now = clock.now()
    const untilMs = clock.monotonic() + options.holdMs
    for (const priority of turns.order()) {
      const backlog = backlogs[priority]
      for (let first = backlog.first(); first && first.notBefore <= now; first = backlog.first()) {
        if (taken.length === max) break
        const hold = backlog.take(untilMs)
        holds.add(hold)
        taken.push(receivedOf(queue, hold))
      }
      // The window ran dry and the store has more of this class: a lower one must not overtake it.
      if (backlog.isBlind()) break
    }
    if (taken.length > 0) turns.pass()
    return taken
  }

  const isBlind = () => all.some((backlog) => backlog.isBlind())
  /** Reads on where a page is welcome. Receivers wait for it only where nothing at all is known of a class. */
  const readOn = () => {
    for (const backlog of all) {
      if (!backlog.isLow()) continue
      backlog.load().then(wake, (error: unknown) => {
        if (backlog.isBlind()) for (const waiter of waiters) waiter.fail(error)
      })
    }
  }

  const wake = () => {
    if (waiters.size === 0) return
    readOn()
    if (isBlind()) return
    for (const waiter of waiters) {
      const taken = take(waiter.max)
      if (taken.length > 0) waiter.end(taken)
      else if (waiter.atOnce) waiter.end([])
    }
    arm()
  }

  /** Delayed messages need a timer only while somebody waits for them. */
  const arm = () => {
    clock.clearTimeout(timer)
    if (waiters.size === 0) return
    const next = Math.min(...all.map((backlog) => backlog.first()?.notBefore ?? Number.POSITIVE_INFINITY))
    if (next === Number.POSITIVE_INFINITY) return
    timer = clock.setTimeout(wake, Math.min(timerMsMax, Math.max(1, Math.ceil(next - clock.now()))))
  }

  return {
    put: (priority, entry) => backlogs[priority].put(entry),
    remove: (priority, place) => {
      const hold = backlogs[priority].remove(place)
      if (hold) holds.drop(hold)
    },
    wake,
    receive: ({ max, waitMs, signal }) => {
      if (signal?.aborted || max < 1) return Promise.resolve([])
      readOn()
      const ready = waiters.size > 0 || isBlind() ? [] : take(max)
      if (ready.length > 0) return Promise.resolve(ready)
      return new Promise((resolve, reject) => {
        const leave = () => {
          waiters.delete(waiter)
          clock.clearTimeout(patience)
          signal?.removeEventListener('abort', giveUp)
          if (waiters.size === 0) clock.clearTimeout(timer)
        }
        const waiter: Waiter = {
          max,
          atOnce: waitMs <= 0,
          end: (received) => {
            leave()
            resolve(received)
          },
          fail: (error) => {
            leave()
            reject(error)
          },
        }
        const giveUp = () => waiter.end([])
        const patience = waitMs > 0 ? clock.setTimeout(giveUp, waitMs) : undefined
        signal?.addEventListener('abort', giveUp, { once: true })
        waiters.add(waiter)
        wake()
      })
    },
    extend: (hold, ms) => holds.set(hold, clock.monotonic() + ms),
    release: (hold, delayMs) => {
      holds.drop(hold)
      const untilMs = clock.monotonic() + delayMs
      if (delayMs <= 0) hold.backlog.giveBack(hold)
      else holds.set(hold.backlog.renew(hold, untilMs), untilMs)
      wake()
    },
    drop: (hold) => {
      holds.drop(hold)
      hold.backlog.remove(hold.entry.place)
    },
    close: () => {
      for (const waiter of waiters) waiter.end([])
      holds.stop()
    },
  }
}

export const backlogName = (queue: string, priority: Priority): string => `${queue}#${priority}`

/** Those of the received messages that are still in the receiver's hands. */
export const stillHeld = (received: readonly Received[]): readonly { readonly queue: string; readonly hold: Hold }[] =>
  received.flatMap(({ queue, receipt }) => {
    const hold = receipt as Hold
    return hold.backlog.isHeld(hold) ? [{ queue, hold }] : []
  })

const receivedOf = (queue: string, hold: Hold): Received => {
  const { body, message, receives } = hold.entry
  return message ? { queue, message, body, receives, receipt: hold } : { queue, body, receives, receipt: hold }
}
