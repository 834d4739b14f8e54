import { Fault, type FaultDetails, type FaultEntry } from '../kernel/fault.ts'

/** A flag or an argument is wrong. The message never repeats a value that could be a secret. */
export class UsageInvalid extends Fault {
  readonly code = 'USAGE_INVALID'
  readonly retry = 'never'
  /** The command whose help says more, such as `run`. */
  readonly command: string | undefined
  constructor(message: string, details: FaultDetails & { readonly command?: string } = {}) {
    super(message, details)
    this.command = details.command
  }
}

/** Whoever read our output has gone away, as `head` does. */
export class OutputClosed extends Fault {
  readonly code = 'OUTPUT_CLOSED'
  readonly retry = 'never'
  constructor(cause?: unknown) {
    super('whoever read the output has gone away', { cause })
  }
}

/** The token file is missing, or others could read or replace it. */
export class TokenFileUnusable extends Fault {
  readonly code = 'TOKEN_FILE_UNUSABLE'
  readonly retry = 'never'
}

/** Another process has the data directory and does not answer on its socket. */
export class HolderSilent extends Fault {
  readonly code = 'HOLDER_SILENT'
  readonly retry = 'later'
}

export const cliFaults: Readonly<Record<string, FaultEntry>> = {
  USAGE_INVALID: {
    meaning: 'A flag or an argument of the command line is wrong.',
    next: 'Nothing was done.',
    advice: 'The message names it; `millrace <command> --help` has them all.',
  },
  OUTPUT_CLOSED: {
    meaning: 'The pipe that the output goes to was closed at its other end.',
    next: '`run` cancels its job and ends with 141; everything else ends at once.',
    advice: 'Nothing, if it was `head` or `less`.',
  },
  TOKEN_FILE_UNUSABLE: {
    meaning: 'The file with the API token is missing, empty, a link, or readable by others.',
    next: 'Nothing was sent and nothing was started.',
    advice: 'Give it mode 0600, or remove it: a new one is made in the data directory.',
  },
  HOLDER_SILENT: {
    meaning: 'Another process works on the data directory, but nobody answers on its socket.',
    next: 'It was waited for, for five seconds. Nothing was stored.',
    advice: 'Wait until that process is ready or end it, or choose another directory with --data-dir.',
  },
}
