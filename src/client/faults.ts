import { Fault, type FaultDetails, type FaultEntry, type Retry } from '../kernel/fault.ts'

export interface AnswerDetails extends FaultDetails {
  /** The job that stands in the way, if one does. */
  readonly jobId?: string | undefined
  /** Under which id the request was made: calling again with it is safe, whatever became of it. */
  readonly requestId?: string | undefined
}

/** The server's own fault, brought here with everything callers branch on. Its code is in the catalogue of whoever raised it. */
export class ServerFault extends Fault {
  readonly code: string
  readonly retry: Retry
  readonly jobId: string | undefined
  readonly requestId: string | undefined
  constructor(code: string, message: string, retry: Retry, details: AnswerDetails = {}) {
    super(message, details)
    this.code = code
    this.retry = retry
    this.jobId = details.jobId
    this.requestId = details.requestId
  }
}

/** Nobody answered, or the connection was lost before the answer came. What was asked for may have been done. */
export class Unreachable extends Fault {
  readonly code = 'UNREACHABLE'
  readonly retry = 'later'
  readonly requestId: string | undefined
  constructor(address: string, reason: string, details: AnswerDetails = {}) {
    super(`no answer from ${address} (${reason}): is a server running there? 'millrace up' starts one`, details)
    this.requestId = details.requestId
  }
}

/** Something answered that is no server of ours, or one of another version. */
export class ServerForeign extends Fault {
  readonly code = 'SERVER_FOREIGN'
  readonly retry = 'never'
  constructor(address: string, reason: string, details: FaultDetails = {}) {
    super(`what answers at ${address} is no Millrace server of this version (${reason})`, details)
  }
}

export class AddressInvalid extends Fault {
  readonly code = 'ADDRESS_INVALID'
  readonly retry = 'never'
  constructor(address: string, details: FaultDetails = {}) {
    super(`'${address}' is no address of a server: use http://host:port, https://host:port or unix:/path`, {
      ...details,
      field: 'address',
    })
  }
}

export class ClientClosed extends Fault {
  readonly code = 'CLIENT_CLOSED'
  readonly retry = 'never'
  constructor(details: FaultDetails = {}) {
    super('the client was closed', details)
  }
}

/** An abbreviated job id that fits more than one job. */
export class IdAmbiguous extends Fault {
  readonly code = 'ID_AMBIGUOUS'
  readonly retry = 'never'
  readonly candidates: readonly string[]
  constructor(prefix: string, candidates: readonly string[], more: boolean) {
    super(`'${prefix}' fits more than one job: ${candidates.join(', ')}${more ? ' and more' : ''}`, { field: 'jobId' })
    this.candidates = candidates
  }
}

export const clientFaults: Readonly<Record<string, FaultEntry>> = {
  UNREACHABLE: {
    meaning: 'No server answered, or the connection was lost before the answer came.',
    next: 'Calls that may be repeated were repeated until the deadline. What was asked for may have been done all the same.',
    advice:
      'Check that the server runs and that the address is right. To enqueue again, use the request id of the fault.',
  },
  SERVER_FOREIGN: {
    meaning: 'Something answers at the address, but it does not speak the API of this version.',
    next: 'Nothing is repeated.',
    advice: 'Check the address; bring client and server to the same version.',
  },
  ADDRESS_INVALID: {
    meaning: 'The address of the server cannot be read.',
    next: 'Nothing was sent.',
    advice: 'Use `http://host:port`, `https://host:port` or `unix:/path/to/socket`.',
  },
  CLIENT_CLOSED: {
    meaning: 'The client was closed before or during the call.',
    next: 'Nothing is repeated. What was asked for may have been done all the same.',
    advice: 'Nothing, if the program was ending; otherwise make a new client.',
  },
  ID_AMBIGUOUS: {
    meaning: 'An abbreviated job id fits more than one job; the fault lists them.',
    next: 'Nothing was asked or changed.',
    advice: 'Give more of the id.',
  },
}
