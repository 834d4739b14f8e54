import type { Actor } from 'xstate'
import type { BufferLimits, batchBuffer } from '../../machines/batch-buffer.ts'
import type { Clock } from '../kernel/clock.ts'
import type { Random } from '../kernel/random.ts'
import { BatchDiscarded, BatcherClosed } from './faults.ts'
import { createFlights, type FlightHooks } from './flights.ts'
import { checkedSize, createHold, type Held, type Hold, type ItemRules, type Promised } from './hold.ts'
import { type BatchLimits, checkLimits } from './limits.ts'
import { createWaitingLine } from './waiting-line.ts'

export interface BatcherHooks<Item> extends ItemRules<Item>, FlightHooks<Item> {}

/**
 * The one batcher. Items go in one by one and leave in batches, in order, each batch once it was acknowledged. Law B3: nothing
 * is dropped, and what is given up is given up by the owner.
 */
export interface Batcher<Item, Out = Item> {
  /**
   * Undefined when there was room, which is the usual case; otherwise a promise that resolves once the item is in. Adds keep
   * their order, also those that wait. Rejects with BatcherClosed if the batcher stopped taking items before this one got in.
   */
  add(item: Item): Promise<void> | undefined
  /**
   * Flushes what came before, then this item alone; resolves when both are acknowledged. Rejects with BatchDiscarded if the
   * owner gave up on either, with BatcherClosed if it was refused or abandoned.
   */
  barrier(item: Item): Promise<void>
  /** What is there is flushed as soon as nothing is in flight, whatever its age. */
  flushNow(): void
  /** Takes nothing more and flushes everything, of those who wait for room too. Resolves when closed, rejects if revoked. */
  drain(): Promise<void>
  /** Abandons: gives back what is held, in order. The outcome of a flush that is under way is ignored. */
  revoke(): readonly Out[]
  /** Flushes the failing batch again at once. Does nothing when no batch is failing. */
  retry(): void
  /** Gives up on the failing batch, hands it back and goes on with the next. Does nothing when no batch is failing. */
  discard(): readonly Out[]
  /** What is held just now: open, in line and in flight. A live view. */
  readonly held: Held
  /** For those who watch. Only the batcher sends to it. */
  readonly actor: Actor<typeof batchBuffer>
}

export const createBatcher = <Item>(
  deps: { readonly clock: Clock; readonly random: Random },
  limits: BatchLimits,
  hooks: BatcherHooks<Item>,
): Batcher<Item> => {
  checkLimits(limits)
  return createBatcherOver(deps, limits, createHold(deps.clock, limits, hooks), hooks)
}

/** The same over a hold of the owner's own, which keeps the arithmetic and its limits: items go in, batches of `Out` leave. */
export const createBatcherOver = <Item, Out>(
  deps: { readonly clock: Clock; readonly random: Random },
  limits: BufferLimits,
  hold: Hold<Item, Out>,
  hooks: Pick<ItemRules<Item>, 'sizeOf'> & FlightHooks<Out>,
): Batcher<Item, Out> => {
  const waiters = createWaitingLine()
  let stopped: 'draining' | 'revoked' | undefined
  let drained: Promise<void> | undefined
  let drainer: Promised | undefined
  let discards = 0

  const released = (): void => {
    if (!waiters.isEmpty()) letIn()
    if (hold.waiting() === undefined) hold.sealIfAsked()
  }

  const letIn = (): void => {
    waiters.letIn()
    // Whoever still waits although nothing is in line is larger than all the room there is: what came before it has to go.
    if (!waiters.isEmpty() && hold.waiting() === undefined) hold.seal('bytes')
  }

  const flights = createFlights({ ...deps, hold, released, closed: () => drainer?.resolve() }, limits, hooks)

  const lineUp = (enter: () => boolean, refuse: (cause: unknown) => void): void => {
    waiters.join({ enter, refuse })
    if (!flights.isIdle()) return
    hold.seal('bytes')
    flights.wake()
  }

  // Apart from `add`, because a function whose arguments are captured allocates, also on the calls that never wait.
  const addLater = (item: Item, size: number): Promise<void> =>
    new Promise((resolve, reject) => {
      if (stopped !== undefined) return reject(new BatcherClosed(`the batcher is ${stopped}`))
      const enter = () => {
        const entered = hold.offer(item, size) !== 'no room'
        if (entered) resolve()
        return entered
      }
      lineUp(enter, reject)
    })

  return {
    add: (item) => {
      const size = checkedSize(hooks, item)
      const admission = stopped === undefined && waiters.isEmpty() ? hold.offer(item, size) : 'no room'
      if (admission === 'joined') return undefined
      if (admission === 'no room') return addLater(item, size)
      flights.wake()
      return undefined
    },
    barrier: async (item) => {
      if (stopped !== undefined) throw new BatcherClosed(`the batcher is ${stopped}`)
      const size = checkedSize(hooks, item)
      const seen = discards
      await new Promise<void>((resolve, reject) => {
        const enter = () => hold.offerAlone(item, size, { resolve, reject })
        if (waiters.isEmpty() && enter()) flights.wake()
        else lineUp(enter, reject)
      })
      if (seen !== discards) throw new BatchDiscarded('what came before the barrier was discarded')
    },
    flushNow: () => {
      hold.ask()
      if (!flights.isIdle()) return
      hold.sealIfAsked()
      flights.wake()
    },
    drain: () => {
      if (stopped === 'revoked') return Promise.reject(new BatcherClosed('the batcher is revoked'))
      drained ??= new Promise((resolve, reject) => {
        stopped = 'draining'
        drainer = { resolve, reject }
        flights.announce()
        flights.drain()
      })
      return drained
    },
    revoke: () => {
      if (stopped === 'revoked' || flights.actor.getSnapshot().status === 'done') return []
      stopped = 'revoked'
      const cause = new BatcherClosed('the batcher is revoked')
      // Before the machine ends: whoever drains must hear of the revoke, not of the end.
      drainer?.reject(cause)
      const first = flights.revoke()
      const batches = first === undefined ? hold.abandon() : [first, ...hold.abandon()]
      for (const { barrier } of batches) barrier?.reject(cause)
      waiters.refuse(cause)
      return batches.flatMap(({ sealed }) => sealed.items)
    },
    retry: flights.retry,
    discard: () => {
      const batch = flights.discard()
      if (batch === undefined) return []
      discards += 1
      batch.barrier?.reject(new BatchDiscarded('the batch of the barrier was discarded'))
      return batch.sealed.items
    },
    held: hold.held,
    actor: flights.actor,
  }
}
