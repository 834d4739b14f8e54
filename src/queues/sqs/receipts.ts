import type { Clock } from '../../kernel/clock.ts'
import type { Received } from '../port.ts'
import { inBatches, type Retrying } from './batches.ts'
import type { Found } from './poll.ts'
import type { EntryOutcome, SqsService } from './service.ts'

/** What we keep of a receive. Nobody outside looks at it. */
export interface Receipt {
  readonly url: string
  readonly handle: string
  readonly receivedAtMs: number
  /** On our monotonic clock. A receipt that was used up has 0 here. */
  untilMs: number
}

export type ReceiptVerb = 'extend' | 'finish' | 'release' | 'deadLetter'

interface ReceiptsDeps {
  readonly clock: Clock
  readonly service: Pick<SqsService, 'remove' | 'hide'>
  readonly retrying: (verb: ReceiptVerb) => Retrying
  /** Receipts that were good for nothing any more: ignored, and counted here. */
  readonly stale: (verb: ReceiptVerb, count: number) => void
}

/** The service hides a message for at most 12 hours from its receive, however often it is extended. */
const hiddenMsMax = 12 * 3_600_000

export const createReceipts = (deps: ReceiptsDeps, callsMax: number) => {
  const { clock, service } = deps

  /** Does something to each receipt that is still good, queue by queue; `then` where it was done. Throws the first fault. */
  const each = async (
    verb: ReceiptVerb,
    received: readonly Received[],
    call: (url: string, receipts: readonly Receipt[]) => Promise<readonly EntryOutcome[]>,
    then: (receipt: Receipt) => void,
  ): Promise<void> => {
    const receipts = received.map((one) => one.receipt as Receipt)
    const good = receipts.filter((receipt) => clock.monotonic() < receipt.untilMs)
    const groups = [...groupBy(good, (receipt) => receipt.url)]
    const outcomes = await Promise.all(
      groups.map(([url, group]) => inBatches(deps.retrying(verb), callsMax, group, (some) => call(url, some))),
    )
    const all = outcomes.flat()
    groups
      .flatMap(([, group]) => group)
      .forEach((receipt, index) => {
        if (all[index] === undefined) then(receipt)
      })
    const stale = receipts.length - good.length + all.filter((outcome) => outcome === 'stale').length
    if (stale > 0) deps.stale(verb, stale)
    const fault = all.find((outcome) => typeof outcome === 'object')
    if (fault) throw fault
  }
  const secondsFor = (receipt: Receipt, ms: number): number => {
    const leftMs = hiddenMsMax - (clock.monotonic() - receipt.receivedAtMs)
    return Math.max(0, Math.min(Math.ceil(ms / 1_000), Math.floor(leftMs / 1_000)))
  }
  const hide = (verb: ReceiptVerb, received: readonly Received[], ms: number, then: (receipt: Receipt) => void) =>
    each(
      verb,
      received,
      (url, receipts) =>
        service.hide(
          url,
          receipts.map((receipt) => ({ handle: receipt.handle, seconds: secondsFor(receipt, ms) })),
        ),
      then,
    )
  const useUp = (receipt: Receipt) => {
    receipt.untilMs = 0
  }

  return {
    of: ({ url, message }: Found, holdMs: number): Receipt => {
      const receivedAtMs = clock.monotonic()
      return { url, handle: message.handle, receivedAtMs, untilMs: receivedAtMs + holdMs }
    },
    extend: (received: readonly Received[], ms: number): Promise<void> => {
      const askedAtMs = clock.monotonic()
      return hide('extend', received, ms, (receipt) => {
        receipt.untilMs = askedAtMs + secondsFor(receipt, ms) * 1_000
      })
    },
    release: (received: readonly Received[], delayMs: number) => hide('release', received, delayMs, useUp),
    remove: (verb: 'finish' | 'deadLetter', received: readonly Received[]) =>
      each(
        verb,
        received,
        (url, receipts) =>
          service.remove(
            url,
            receipts.map((receipt) => receipt.handle),
          ),
        useUp,
      ),
  }
}

export const groupBy = <Thing>(things: readonly Thing[], keyOf: (thing: Thing) => string): Map<string, Thing[]> => {
  const groups = new Map<string, Thing[]>()
  for (const thing of things) {
    const key = keyOf(thing)
    const group = groups.get(key)
    if (group) group.push(thing)
    else groups.set(key, [thing])
  }
  return groups
}
