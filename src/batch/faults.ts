import { Fault, type FaultEntry } from '../kernel/fault.ts'

/** The limits of a batcher contradict each other, or would let it hang or grow without end. */
export class BatchLimitsRefused extends Fault {
  readonly code = 'BATCH_LIMITS'
  readonly retry = 'never'
}

/** The batcher takes nothing more: it is draining, closed or revoked. */
export class BatcherClosed extends Fault {
  readonly code = 'BATCHER_CLOSED'
  readonly retry = 'never'
}

/** The owner gave up on a batch, so what was promised about it cannot be kept. */
export class BatchDiscarded extends Fault {
  readonly code = 'BATCH_DISCARDED'
  readonly retry = 'never'
}

export const batchFaults: Readonly<Record<string, FaultEntry>> = {
  BATCH_LIMITS: {
    meaning: 'The limits of a batcher contradict each other; the field that is named is out of its range.',
    next: 'The batcher was not created and nothing was taken in.',
    advice: 'Correct the named limit. A high-water mark must leave room for at least two full batches.',
  },
  BATCHER_CLOSED: {
    meaning: 'An item came to a batcher that was draining, closed or revoked before the item got in.',
    next: 'The item was not taken in; it still belongs to the caller.',
    advice:
      'Nothing, if it happened while stopping. Otherwise look for the part that goes on after it was told to stop.',
  },
  BATCH_DISCARDED: {
    meaning: 'A batch that could not be flushed was given up by its owner while somebody waited for it.',
    next: 'Batches behind it are flushed in order; the one that was given up is not tried again.',
    advice: 'Look for the reason that was recorded when the batch got stuck.',
  },
}
