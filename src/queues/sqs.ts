// Queues over SQS. The service's queues carry hints only, so losing, doubling and reordering them is harmless; see the port.
// I1  One queue of the service per class: it has no priorities of its own.
// I2  Receipt handles stay in here, and one whose hold has passed by our own clock is not used any more.
// I3  Nothing is held while a job runs, so neither the 12 hours nor the 120,000 in flight are ever near.

import type { Clock } from '../kernel/clock.ts'
import type { Random } from '../kernel/random.ts'
import type { RetryPolicy } from '../kernel/retry.ts'
import { createSharedAbort } from '../kernel/shared-abort.ts'
import { QueueClosed, type QueueFault } from './faults.ts'
import { decodeMessage, encodeMessage } from './message.ts'
import type { Outgoing, Queue, Received } from './port.ts'
import { type AddressOptions, createAddresses } from './sqs/addresses.ts'
import { inBatches, type Retrying, withRetries } from './sqs/batches.ts'
import { encodeDeadLetter, readDeadLetters } from './sqs/dead-letters.ts'
import { linked } from './sqs/deadline.ts'
import { createPace, type Pace } from './sqs/pace.ts'
import { type Found, poll } from './sqs/poll.ts'
import { createReceipts, groupBy, type ReceiptVerb } from './sqs/receipts.ts'
import { connect, connectionDefaults, type SqsConnection, type SqsService } from './sqs/service.ts'
import { queueFaultOf } from './sqs/translate.ts'
import { createTurns, type Turns } from './turns.ts'

export { provisionQueues } from './sqs/provision.ts'

export interface SqsOptions extends SqsConnection, AddressOptions {
  /** How long a received message is hidden from other receivers. Counted in whole seconds. */
  readonly holdMs: number
  /** Tries and pauses of everything but receiving. */
  readonly retry: RetryPolicy
  /** Pauses between receives while the service fails; they never give up. */
  readonly pollRetry: RetryPolicy
}

export const sqsDefaults = {
  ...connectionDefaults,
  holdMs: 60_000,
  retry: { attemptsMax: 5, baseMs: 100, capMs: 2_000 },
  pollRetry: { attemptsMax: Number.POSITIVE_INFINITY, baseMs: 200, capMs: 20_000 },
} as const

/** What is worth counting. `count` messages were concerned. */
export interface SqsEvent {
  readonly kind: 'stale' | 'retried'
  readonly verb: 'send' | 'receive' | 'extend' | 'finish' | 'release' | 'deadLetter' | 'deadLetters'
  readonly code?: string
  readonly count: number
}

export interface SqsDeps {
  readonly clock: Clock
  readonly random: Random
  readonly emit?: (event: SqsEvent) => void
}

export type SqsArguments = Pick<SqsOptions, 'region'> & Partial<SqsOptions>

/** Connects to the service. */
export const openSqs = async (deps: SqsDeps, options: SqsArguments): Promise<Queue> => {
  const settings: SqsOptions = { ...sqsDefaults, ...options }
  return createSqsQueue({ ...deps, service: await connect(deps.clock, settings) }, settings)
}

/** The service cannot delay a message for longer than 15 minutes; it comes early then, and the store gives it back. */
const delaySecondsMax = 900

/** The queue over any such service. Separate from `openSqs`, because everything that decides is here. */
export const createSqsQueue = (deps: SqsDeps & { readonly service: SqsService }, options: SqsOptions): Queue => {
  const { clock, service } = deps
  const closing = createSharedAbort()
  const underWay = new Set<Promise<unknown>>()
  const states = new Map<string, { readonly pace: Pace; readonly turns: Turns }>()
  const holdSeconds = Math.ceil(options.holdMs / 1_000)

  const emit = createEmit(deps.emit)
  const retrying = (verb: SqsEvent['verb']): Retrying => ({
    clock,
    random: deps.random,
    policy: options.retry,
    retried: (fault) => emit({ kind: 'retried', verb, code: fault.code, count: 1 }),
  })
  const urlOf = createAddresses(options, (name) => withRetries(retrying('receive'), () => service.urlOf(name)))
  const stale = (verb: ReceiptVerb, count: number) => emit({ kind: 'stale', verb, count })
  const receipts = createReceipts({ clock, service, retrying, stale }, options.sendSockets)

  const check = () => {
    if (closing.signal.aborted) throw new QueueClosed('the queue was closed')
  }
  const track = <Result>(work: Promise<Result>): Promise<Result> => {
    const done = work.catch(() => undefined).finally(() => underWay.delete(done))
    underWay.add(done)
    return work
  }
  const stateOf = (queue: string) => {
    const state = states.get(queue) ?? { pace: createPace(deps, options.pollRetry), turns: createTurns() }
    states.set(queue, state)
    return state
  }
  const receivedOf = (queue: string, found: Found): Received => {
    const { body, receives } = found.message
    const message = decodeMessage(body)
    const receipt = receipts.of(found, holdSeconds * 1_000)
    return { queue, ...(message ? { message } : {}), body, receives, receipt }
  }
  const giveBack = (queue: string, found: readonly Found[]) => {
    const received = found.map((one) => receivedOf(queue, one))
    // Not given back is no harm: the hold passes.
    track(receipts.release(received, 0)).catch(() => undefined)
  }

  const sendTo = async (outgoing: readonly Outgoing[]): Promise<readonly (QueueFault | undefined)[]> => {
    const [{ message }] = outgoing as readonly [Outgoing]
    try {
      const url = await urlOf(message.queue, message.priority)
      const outcomes = await inBatches(retrying('send'), options.sendSockets, outgoing, (some) =>
        service.send(
          url,
          some.map((one) => ({ body: encodeMessage(one.message), delaySeconds: delayOf(one, clock.now()) })),
        ),
      )
      return outcomes.map((outcome) => (typeof outcome === 'object' ? outcome : undefined))
    } catch (error) {
      const fault = queueFaultOf(error)
      return outgoing.map(() => fault)
    }
  }

  return {
    send: async (outgoing) => {
      if (closing.signal.aborted) return outgoing.map(() => new QueueClosed('the queue was closed'))
      const groups = groupBy(outgoing, ({ message }) => `${message.queue}#${message.priority}`)
      const faults = new Map<Outgoing, QueueFault | undefined>()
      const all = [...groups.values()].map(async (group) => {
        const outcomes = await sendTo(group)
        group.forEach((one, index) => {
          faults.set(one, faults.get(one) ?? outcomes[index])
        })
      })
      await Promise.all(all)
      return outgoing.map((one) => faults.get(one))
    },
    receive: async (queue, receiveOptions) => {
      check()
      const { max, waitMs, signal } = receiveOptions
      if (max < 1) return []
      const work = linked([signal, closing.signal], async (ended) => {
        const found = await poll(
          {
            clock,
            service,
            ...stateOf(queue),
            urlOf: (priority) => urlOf(queue, priority),
            giveBack: (some) => giveBack(queue, some),
          },
          holdSeconds,
          { max, waitMs, signal: ended.signal },
        )
        return found.map((one) => receivedOf(queue, one))
      })
      return track(work)
    },
    extend: async (received, ms) => {
      check()
      await receipts.extend(received, ms)
    },
    finish: async (received) => {
      check()
      await receipts.remove('finish', received)
    },
    release: async (received, delayMs) => {
      check()
      await receipts.release(received, delayMs)
    },
    deadLetter: async (received, reason) => {
      check()
      const url = await urlOf(received.queue, 'dead')
      const letter = { body: encodeDeadLetter({ body: received.body, reason }), delaySeconds: 0 }
      const [outcome] = await inBatches(retrying('deadLetter'), 1, [letter], (some) => service.send(url, some))
      if (typeof outcome === 'object') throw outcome
      await receipts.remove('deadLetter', [received])
    },
    deadLetters: async (queue, limit) => {
      check()
      const url = await urlOf(queue, 'dead')
      return withRetries(retrying('deadLetters'), () => readDeadLetters(service, url, limit))
    },
    close: async () => {
      closing.abort()
      while (underWay.size > 0) await Promise.all(underWay)
      service.close()
    },
  }
}

const delayOf = ({ notBefore }: Outgoing, now: number): number =>
  Math.min(delaySecondsMax, Math.max(0, Math.ceil((notBefore - now) / 1_000)))

/** Whoever listens can never break the work that it listens to. */
const createEmit = (emit: SqsDeps['emit']) => (event: SqsEvent) => {
  try {
    emit?.(event)
  } catch {
    // The listener's own failure is the listener's.
  }
}
