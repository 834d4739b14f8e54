import { Fault, type FaultDetails, type FaultEntry } from '../kernel/fault.ts'

/** The caller's input is out of its grammar or over a limit. */
export class InputInvalid extends Fault {
  readonly code = 'INPUT_INVALID'
  readonly retry = 'never'
  constructor(field: string, reason: string, details: Omit<FaultDetails, 'field'> = {}) {
    super(`${field}: ${reason}`, { ...details, field })
  }
}

export class QueueUnknown extends Fault {
  readonly code = 'QUEUE_UNKNOWN'
  readonly retry = 'never'
  constructor(queue: string) {
    super(`there is no queue '${queue}'`, { field: 'queue' })
  }
}

export class JobUnknown extends Fault {
  readonly code = 'JOB_UNKNOWN'
  readonly retry = 'never'
  constructor(jobId: string) {
    super(`there is no job ${jobId}`, { field: 'jobId' })
  }
}

/** A request id was used before, with another body. */
export class RequestReused extends Fault {
  readonly code = 'REQUEST_REUSED'
  readonly retry = 'never'
  readonly jobId: string
  constructor(requestId: string, jobId: string) {
    super(`request id '${requestId}' was used before for another request, which made job ${jobId}`, {
      field: 'requestId',
    })
    this.jobId = jobId
  }
}

/** The attempt is over: it was settled, it expired, or the job moved on. */
export class ClaimLost extends Fault {
  readonly code = 'CLAIM_LOST'
  readonly retry = 'never'
  readonly jobId: string
  constructor(jobId: string, attempt: number) {
    super(`attempt ${attempt} of job ${jobId} is over; nothing it does counts any more`)
    this.jobId = jobId
  }
}

/** The job is in a state in which this cannot be done to it. */
export class JobNotReady extends Fault {
  readonly code = 'JOB_NOT_READY'
  readonly retry = 'never'
}

/** The store could not take the call for now. */
export class StoreBusy extends Fault {
  readonly code = 'STORE_BUSY'
  readonly retry = 'later'
}

/** A task token is malformed, forged, foreign or expired. The text is one for all, so that it tells an attacker nothing. */
export class TokenRefused extends Fault {
  readonly code = 'TOKEN_REFUSED'
  readonly retry = 'never'
  constructor() {
    super('the task token is not valid', { field: 'token' })
  }
}

export class CursorRefused extends Fault {
  readonly code = 'CURSOR_REFUSED'
  readonly retry = 'never'
  constructor() {
    super('the page cursor is not valid for this listing', { field: 'cursor' })
  }
}

export const jobFaults: Readonly<Record<string, FaultEntry>> = {
  INPUT_INVALID: {
    meaning: 'A field of the request is missing, malformed or over its limit; the fault names field and limit.',
    next: 'Nothing was stored.',
    advice: 'Correct the named field.',
  },
  QUEUE_UNKNOWN: {
    meaning: 'The request names a queue that is not configured.',
    next: 'Nothing was stored.',
    advice: 'Use one of the configured queues, or add this one to `jobs.queues`.',
  },
  JOB_UNKNOWN: {
    meaning: 'There is no such job, or its retention has passed.',
    next: 'Nothing changed.',
    advice: 'Check the id; ended jobs are kept for `jobs.retentionMs`.',
  },
  REQUEST_REUSED: {
    meaning: 'The request id was used before for a request with another body; the fault names the job it made.',
    next: 'Nothing was stored; the first job goes on.',
    advice: 'Use a new request id for a new request.',
  },
  CLAIM_LOST: {
    meaning: 'The worker no longer holds the job: it was too late, or somebody else settled the attempt.',
    next: 'The write was refused. The worker stops what it was doing for that attempt.',
    advice: 'Nothing. If it happens often, workers are paused for longer than `jobs.execution.leaseMs`.',
  },
  JOB_NOT_READY: {
    meaning: 'The job is in a state in which this cannot be done: for example a running job cannot be retried.',
    next: 'Nothing changed.',
    advice: 'Look at the job again and decide anew.',
  },
  STORE_BUSY: {
    meaning: 'The store could not take the call for now: it is throttled, full or out of reach.',
    next: 'Nothing more is tried for this call. Repeating it with the same request id is safe.',
    advice: 'Wait for the stated delay, then call again.',
  },
  TOKEN_REFUSED: {
    meaning: 'The task token is malformed, forged, expired or belongs to something else.',
    next: 'Nothing changed.',
    advice: 'Use the newest token that the server gave for this attempt.',
  },
  CURSOR_REFUSED: {
    meaning: 'The page cursor was changed, or belongs to another listing.',
    next: 'Nothing was listed.',
    advice: 'Start the listing again without a cursor.',
  },
}
