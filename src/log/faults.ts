import { Fault, type FaultEntry } from '../kernel/fault.ts'

/** The log takes nothing more: its attempt was abandoned, or it has ended. */
export class LogClosed extends Fault {
  readonly code = 'LOG_CLOSED'
  readonly retry = 'never'
}

/** What was asked of a stream is nothing that a stream can give. */
export class FollowInvalid extends Fault {
  readonly code = 'FOLLOW_INVALID'
  readonly retry = 'never'
  constructor(field: string, problem: string) {
    super(`${field} ${problem}`, { field })
  }
}

export const logFaults: Readonly<Record<string, FaultEntry>> = {
  LOG_CLOSED: {
    meaning: 'Something was to be written to the log of an attempt that was abandoned or has ended.',
    next: 'It was not stored. What was acknowledged before stays.',
    advice: 'Nothing, if the attempt was lost. Otherwise look for the part that goes on after its attempt.',
  },
  FOLLOW_INVALID: {
    meaning: 'A stream was asked for with a sequence, attempt or time that cannot be; the fault names the field.',
    next: 'Nothing was sent.',
    advice: 'Correct the named field. Sequences and attempts are whole numbers; 0 is the beginning.',
  },
}
