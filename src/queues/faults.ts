import { Fault, type FaultEntry } from '../kernel/fault.ts'

/** A failure of the transport below the port, translated by the adapter. */
export abstract class QueueFault extends Fault {}

/** No answer, or a failure of the service's own. A message may have been sent all the same. */
export class QueueUnavailable extends QueueFault {
  readonly code = 'QUEUE_UNAVAILABLE'
  readonly retry = 'later'
}

/** The service refused for now. */
export class QueueThrottled extends QueueFault {
  readonly code = 'QUEUE_THROTTLED'
  readonly retry = 'later'
}

/** The service refuses us for good: no such queue, no permission. */
export class QueueRefused extends QueueFault {
  readonly code = 'QUEUE_REFUSED'
  readonly retry = 'never'
}

/** A call came after the queue was closed. */
export class QueueClosed extends QueueFault {
  readonly code = 'QUEUE_CLOSED'
  readonly retry = 'never'
}

export const queueFaults: Readonly<Record<string, FaultEntry>> = {
  QUEUE_UNAVAILABLE: {
    meaning: 'The queue service did not answer in time, or answered with a failure of its own.',
    next: 'Jobs are safe in the store; the sweeper sends what may not have been sent.',
    advice: 'Check that the queue service is reachable; nothing has to be repaired by hand.',
  },
  QUEUE_THROTTLED: {
    meaning: 'The queue service refused a call because too many came at once.',
    next: 'The adapter has already retried with growing pauses; the sweeper sends what was not sent.',
    advice: 'Wait. If it lasts, look at the queue service for its limits.',
  },
  QUEUE_REFUSED: {
    meaning: 'The queue service refuses us for good: no such queue, no permission or wrong credentials.',
    next: 'Jobs are safe in the store, but nobody receives them until this is mended.',
    advice: 'Check the queue names, the region and the credentials in the configuration.',
  },
  QUEUE_CLOSED: {
    meaning: 'A call came after the queue was closed.',
    next: 'Nothing was sent or received.',
    advice: 'Do not use a runtime after stopping it.',
  },
}
