import { Fault, type FaultEntry } from '../kernel/fault.ts'

/** The server was to listen beyond this machine, and anybody could have called it. */
export class ServerUnauthenticated extends Fault {
  readonly code = 'SERVER_UNAUTHENTICATED'
  readonly retry = 'never'
  constructor(host: string) {
    super(`no tokens are configured, so the server does not listen on ${host}: set server.tokens`, {
      field: 'server.tokens',
    })
  }
}

/** The address cannot be listened on. The message says why. */
export class AddressUnusable extends Fault {
  readonly code = 'ADDRESS_UNUSABLE'
  readonly retry = 'never'
}

/** The server is about to stop. */
export class ServerDraining extends Fault {
  readonly code = 'SERVER_DRAINING'
  readonly retry = 'later'
  constructor() {
    super('the server is stopping', { retryAfterMs: 1_000 })
  }
}

/** As many calls are under way as the server takes. */
export class ServerBusy extends Fault {
  readonly code = 'SERVER_BUSY'
  readonly retry = 'later'
  constructor(callsMax: number) {
    super(`the server has ${callsMax} calls under way and takes no more`, { limit: callsMax, retryAfterMs: 1_000 })
  }
}

/** No bearer token, or not one of ours. The text is one for all, so that it tells an attacker nothing. */
export class CallUnauthenticated extends Fault {
  readonly code = 'CALL_UNAUTHENTICATED'
  readonly retry = 'never'
  constructor() {
    super("this call needs an accepted token in the header 'authorization: Bearer …'", { field: 'authorization' })
  }
}

/** The call was made under a name that is not ours, or by a page of another site. */
export class CallForeign extends Fault {
  readonly code = 'CALL_FOREIGN'
  readonly retry = 'never'
  constructor(header: 'host' | 'origin' | 'sec-fetch-site') {
    super(`the call is not for this server or comes from another site, by its header '${header}'`, { field: header })
  }
}

/** The request did not arrive as a whole in time. */
export class RequestSlow extends Fault {
  readonly code = 'REQUEST_SLOW'
  readonly retry = 'later'
  constructor(timeoutMs: number) {
    super(`the request did not arrive within ${timeoutMs} ms`, { limit: timeoutMs })
  }
}

/** The reader of a stream took nothing for too long. */
export class ReaderStalled extends Fault {
  readonly code = 'READER_STALLED'
  readonly retry = 'later'
  constructor(stallMs: number) {
    super(`the reader took nothing for ${stallMs} ms; it can resume where it was`, { limit: stallMs })
  }
}

export const serverFaults: Readonly<Record<string, FaultEntry>> = {
  SERVER_UNAUTHENTICATED: {
    meaning: 'The server was to listen on an address beyond this machine, and no tokens are configured.',
    next: 'Nothing was started: a job runner that anybody can call is a shell for anybody.',
    advice: 'Set `server.tokens`, or let `server.host` be an address of the loopback.',
  },
  ADDRESS_UNUSABLE: {
    meaning: 'The address cannot be listened on: it is taken, not ours, or not allowed. The message says which.',
    next: 'Nothing was started.',
    advice: 'Choose another `server.port` or `server.host`, or stop what listens there.',
  },
  SERVER_DRAINING: {
    meaning: 'The server is stopping and takes no new calls; streams are ended where they are.',
    next: 'Nothing was done for this call. Calls that were under way before are finished.',
    advice: 'Call again shortly: another process or the next one answers. Streams are resumed from the last sequence.',
  },
  SERVER_BUSY: {
    meaning: 'As many calls are under way as `server.callsMax` allows.',
    next: 'Nothing was done for this call.',
    advice: 'Wait for the stated delay, then call again.',
  },
  CALL_UNAUTHENTICATED: {
    meaning: 'The call carries no bearer token, or one that is not accepted.',
    next: 'Nothing of the request was read.',
    advice: 'Send the header `authorization: Bearer …` with a token of `server.tokens` or the one of this machine.',
  },
  CALL_FOREIGN: {
    meaning: 'The header Host is not a name of this server, or a page of another site makes the call.',
    next: 'Nothing of the request was read.',
    advice: 'Call the server by its own address, or add the name to `server.hosts`.',
  },
  REQUEST_SLOW: {
    meaning: 'The request did not arrive as a whole within `server.requestTimeoutMs`.',
    next: 'Nothing was done for this call.',
    advice: 'Call again; if it lasts, look at the connection between caller and server.',
  },
  READER_STALLED: {
    meaning: 'The reader of a stream took nothing for `server.stallMs`.',
    next: 'The stream is reset, so that a reader that sleeps costs nothing.',
    advice: 'Resume from the sequence after the last one that was read.',
  },
}
