import { Fault, type FaultDetails, type FaultEntry } from '../kernel/fault.ts'

/** A failure of the storage below the port, translated by the adapter. */
export abstract class TableFault extends Fault {
  /** `none`: certainly nothing was written. `unknown`: it may have been; read before deciding. */
  abstract readonly outcome: 'none' | 'unknown'
}

/** The backend refused for now. */
export class TableThrottled extends TableFault {
  readonly code = 'TABLE_THROTTLED'
  readonly retry = 'later'
  readonly outcome = 'none'
}

/** Other transactions touched the same rows until the retries were used up. */
export class TableConflict extends TableFault {
  readonly code = 'TABLE_CONFLICT'
  readonly retry = 'later'
  readonly outcome = 'none'
}

/** No answer, or an answer that says nothing about the outcome. */
export class TableUnavailable extends TableFault {
  readonly code = 'TABLE_UNAVAILABLE'
  readonly retry = 'later'
  readonly outcome: 'none' | 'unknown'
  constructor(message: string, outcome: 'none' | 'unknown', details?: FaultDetails) {
    super(message, details)
    this.outcome = outcome
  }
}

/** A row or a write is larger than the backend takes. */
export class TableLimit extends TableFault {
  readonly code = 'TABLE_LIMIT'
  readonly retry = 'never'
  readonly outcome = 'none'
}

/** The disk is full. */
export class TableFull extends TableFault {
  readonly code = 'TABLE_FULL'
  readonly retry = 'later'
  readonly outcome = 'none'
}

/** A stored record does not match its checksum, or cannot be read. */
export class TableCorrupt extends TableFault {
  readonly code = 'TABLE_CORRUPT'
  readonly retry = 'never'
  readonly outcome = 'none'
}

/** The backend refuses us for good: no such table, no permission, wrong credentials. */
export class TableRefused extends TableFault {
  readonly code = 'TABLE_REFUSED'
  readonly retry = 'never'
  readonly outcome = 'none'
}

/** The tables were closed before the call. */
export class TableClosed extends TableFault {
  readonly code = 'TABLE_CLOSED'
  readonly retry = 'never'
  readonly outcome = 'none'
}

export const tableFaults: Readonly<Record<string, FaultEntry>> = {
  TABLE_THROTTLED: {
    meaning: 'The storage refused a call because too many came at once.',
    next: 'The adapter has already retried with growing pauses; the caller is told to come back later.',
    advice: 'Wait and try again. If it lasts, look at the storage service for its limits.',
  },
  TABLE_CONFLICT: {
    meaning: 'A transaction met others on the same rows each time it was tried.',
    next: 'Nothing was written; the caller is told to come back later.',
    advice: 'Try again. If it lasts, something writes one row in a tight loop.',
  },
  TABLE_UNAVAILABLE: {
    meaning: 'The storage did not answer in time, or answered with a failure of its own.',
    next: 'Callers find out by reading whether their write took effect, and repeat it if it did not.',
    advice: 'Check that the storage service is reachable; nothing has to be repaired by hand.',
  },
  TABLE_LIMIT: {
    meaning: 'A row or a transaction is larger than the storage takes.',
    next: 'Nothing was written.',
    advice: 'Make the named value smaller; docs/options.md has the limits.',
  },
  TABLE_FULL: {
    meaning: 'The disk that holds the data directory is full.',
    next: 'The write was refused and nothing was lost; writes go on by themselves once there is room.',
    advice: 'Free some space, or move the data directory to a larger disk.',
  },
  TABLE_CORRUPT: {
    meaning: 'A stored record does not match its checksum.',
    next: 'The record is not used; every other record still is.',
    advice: 'Check the disk. Restore the data directory from a backup if many records are named.',
  },
  TABLE_REFUSED: {
    meaning: 'The storage refuses us for good: no such table, no permission or wrong credentials.',
    next: 'The call failed; nothing was written.',
    advice: 'Check the table names, the region and the credentials in the configuration.',
  },
  TABLE_CLOSED: {
    meaning: 'A call came after the store was closed.',
    next: 'Nothing was written.',
    advice: 'Do not use a runtime after stopping it.',
  },
}
