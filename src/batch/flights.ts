import type { Actor, SnapshotFrom } from 'xstate'
import { type BufferLimits, batchBuffer } from '../../machines/batch-buffer.ts'
import type { Clock } from '../kernel/clock.ts'
import { isFault } from '../kernel/fault.ts'
import type { Random } from '../kernel/random.ts'
import { createRoot } from '../kernel/start.ts'
import type { Batch, Hold, Sealed } from './hold.ts'

// Flights: carries sealed batches from the hold to `flush` and their outcomes to the machine, which decides everything else.
//
// F1  A flight starts if and only if the machine's `flight` number rose. An outcome carries that number; an old one is ignored.
// F2  While a batch is aloft the machine is not told what is opened or sealed: the event that ends the flight says it all.
// F3  Hooks may call every verb of the batcher, also from inside `flush`.
// F4  A flight carries the batches that wait in line one after the other, up to a bound: the next is flushed when the one
//     before it was acknowledged. It ends with the first that fails, and a flight that is tried again carries that one alone.

export interface FlightHooks<Item> {
  /**
   * Resolves: acknowledged. Rejects with a Fault whose retry is `never`: refused, so the batch is stuck. Any other rejection:
   * failed, may succeed later. The same batch comes again after a failure.
   */
  flush(sealed: Sealed<Item>): Promise<void>
  /** The owner must answer, now or later, with `retry()`, `discard()` or `revoke()`. A throw here is a bug and is not caught. */
  stuck?(sealed: Sealed<Item>, cause: unknown): void
  /** Telemetry. A throw here is ignored: watching must never break the work. */
  flushed?(report: Flushed<Item>): void
}

/** A batch that was acknowledged. */
export interface Flushed<Item> extends Sealed<Item> {
  readonly count: number
  /** From the arrival of its oldest item to the start of its first flush. */
  readonly waitedMs: number
  /** From the start of its first flush to the acknowledgement, pauses included. */
  readonly tookMs: number
  readonly attempts: number
}

export interface Flights<Item> {
  /** Something was put into the hold, or sealed. */
  wake(): void
  /** Tells the machine of an open batch that it may not know of yet. */
  announce(): void
  drain(): void
  retry(): void
  /** The failing batch, given up; undefined if there is none. */
  discard(): Batch<Item> | undefined
  /** The batch aloft, if there is one; its outcome is ignored from now on. */
  revoke(): Batch<Item> | undefined
  isIdle(): boolean
  readonly actor: Actor<typeof batchBuffer>
}

export interface FlightDeps<Item> {
  readonly clock: Clock
  readonly random: Random
  /** A flight looks at what leaves the hold, never at what goes in. */
  readonly hold: Hold<never, Item>
  /** A batch was released, and the machine has not heard of it yet: the time to fill the room it left. */
  released(): void
  /** The buffer has drained. */
  closed(): void
}

export const createFlights = <Item>(
  deps: FlightDeps<Item>,
  limits: BufferLimits,
  hooks: FlightHooks<Item>,
): Flights<Item> => {
  const { clock, random, hold } = deps
  const actor = createRoot(batchBuffer, { input: limits, clock })
  // Reading a clock costs as much as adding several items: not for nobody.
  const watched = hooks.flushed !== undefined
  let flight = 0
  let aloft: Aloft<Item> | undefined
  let failure: { readonly cause: unknown } | undefined

  const obey = ({ context, tags, status }: SnapshotFrom<typeof batchBuffer>): void => {
    if (context.flight > flight) takeOff(context.flight)
    else if (tags.has('due')) sealNow(context.draining ? 'drain' : 'age')
    else if (tags.has('stuck') && failure !== undefined) askOwner(failure.cause)
    else if (status === 'done') deps.closed()
  }

  const sealNow = (trigger: 'age' | 'drain'): void => {
    hold.seal(trigger)
    wake()
  }

  const takeOff = (number: number): void => {
    flight = number
    if (aloft === undefined) depart(1)
    else aloft.attempts += 1
    fly(number)
  }

  const depart = (place: number): void => {
    aloft = { batch: hold.depart(), startedAt: watched ? clock.monotonic() : 0, attempts: 1, place }
  }

  const fly = (number: number): void => {
    attempt(hooks, (aloft as Aloft<Item>).batch.sealed).then(
      () => acknowledged(number),
      (cause: unknown) => failed(number, cause),
    )
  }

  const acknowledged = (number: number): void => {
    if (aloft === undefined || number !== flight) return
    const landed = aloft
    release(landed.batch)
    if (aloft === landed && mayCarryOn(landed)) {
      depart(landed.place + 1)
      fly(number)
    } else tell('acknowledged')
    landed.batch.barrier?.resolve()
    if (watched) report(hooks, landed, clock.monotonic())
  }

  /** F4. */
  const mayCarryOn = ({ attempts, place }: Aloft<Item>): boolean =>
    attempts === 1 && place < batchesPerFlight && hold.waiting() !== undefined

  const failed = (number: number, cause: unknown): void => {
    if (aloft === undefined || number !== flight) return
    failure = { cause }
    actor.send({ type: 'failed', retry: isFault(cause) ? cause.retry : 'later', jitter: random.next() })
    failure = undefined
  }

  const askOwner = (cause: unknown): void => {
    const asked = aloft
    // In a microtask, because an answer from inside the machine's own turn would wait in its mailbox.
    queueMicrotask(() => {
      if (asked === undefined || asked !== aloft || !actor.getSnapshot().hasTag('stuck')) return
      hooks.stuck?.(asked.batch.sealed, cause)
    })
  }

  const release = (batch: Batch<Item>): void => {
    hold.release(batch)
    deps.released()
  }

  /** The flight is over: what is left says how to go on. */
  const tell = (type: 'acknowledged' | 'discard'): void => {
    aloft = undefined
    actor.send({ type, at: clock.monotonic(), waiting: hold.waiting(), since: hold.openedAt() })
  }

  const wake = (): void => {
    if (aloft !== undefined) return
    const trigger = hold.waiting()
    if (trigger !== undefined) actor.send({ type: 'sealed', trigger })
    // A batch that fills within this turn starts no timer.
    else if (hold.openCount() === 1) queueMicrotask(announce)
  }

  const announce = (): void => {
    const at = hold.openedAt()
    if (aloft === undefined && at !== undefined) actor.send({ type: 'opened', at })
  }

  actor.subscribe(obey)
  actor.start()
  return {
    wake,
    announce,
    drain: () => actor.send({ type: 'drain' }),
    retry: () => {
      if (actor.getSnapshot().hasTag('failing')) actor.send({ type: 'retry' })
    },
    discard: () => {
      if (aloft === undefined || !actor.getSnapshot().hasTag('failing')) return undefined
      const { batch } = aloft
      release(batch)
      tell('discard')
      return batch
    },
    revoke: () => {
      const batch = aloft?.batch
      aloft = undefined
      actor.send({ type: 'revoke' })
      return batch
    },
    isIdle: () => aloft === undefined,
    actor,
  }
}

/** A transition of the machine costs as much as adding hundreds of items: a buffer that is never empty makes few of them. */
const batchesPerFlight = 8

/** A batch that is being flushed, or waits to be flushed again. */
interface Aloft<Item> {
  readonly batch: Batch<Item>
  readonly startedAt: number
  attempts: number
  /** The how-manieth of its flight. */
  readonly place: number
}

/** A hook that throws before it gives a promise has failed like any other. */
const attempt = <Item>(hooks: FlightHooks<Item>, sealed: Sealed<Item>): Promise<void> => {
  try {
    return hooks.flush(sealed)
  } catch (cause) {
    return Promise.reject(cause)
  }
}

const report = <Item>(hooks: FlightHooks<Item>, { batch, startedAt, attempts }: Aloft<Item>, at: number): void => {
  if (hooks.flushed === undefined) return
  const { sealed, since } = batch
  try {
    hooks.flushed({
      ...sealed,
      count: sealed.items.length,
      waitedMs: startedAt - since,
      tookMs: at - startedAt,
      attempts,
    })
  } catch {
    // See FlightHooks.flushed.
  }
}
