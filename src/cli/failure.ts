// How a failure ends the command line: one line that says what to do, and an exit code. Codes decide, never texts.

import { isFault } from '../kernel/fault.ts'
import { exitCodes } from './exit-codes.ts'
import { UsageInvalid } from './faults.ts'
import { plainText } from './render/plain-text.ts'
import { ownMark } from './render/sanitise.ts'

interface Consequence {
  readonly exit: number
  readonly advice: string
}

const look = 'Look at it with `millrace show`'
const consequences: Readonly<Record<string, Consequence>> = {
  CONFIG_INVALID: { exit: exitCodes.configuration, advice: '`millrace config check` shows everything that is wrong' },
  JOB_UNKNOWN: { exit: exitCodes.unknownJob, advice: '`millrace list` shows the jobs there are' },
  QUEUE_UNKNOWN: { exit: exitCodes.refused, advice: 'Use a configured queue, or add it to jobs.queues' },
  INPUT_INVALID: { exit: exitCodes.refused, advice: 'Correct what is named and try again' },
  REQUEST_REUSED: { exit: exitCodes.refused, advice: 'Use a new --request-id for a new request' },
  JOB_NOT_READY: { exit: exitCodes.refused, advice: look },
  STORE_BUSY: { exit: exitCodes.refused, advice: 'Try again in a moment' },
  DIRECTORY_HELD: { exit: exitCodes.unreachable, advice: 'Stop that process, or choose another --data-dir' },
  HOLDER_SILENT: { exit: exitCodes.unreachable, advice: 'Wait for it or end it, or choose another --data-dir' },
  DIRECTORY_UNUSABLE: { exit: exitCodes.configuration, advice: 'Mend it, or choose another --data-dir' },
  DIRECTORY_DAMAGED: { exit: exitCodes.configuration, advice: 'Keep a copy of it and restore a backup' },
  FORMAT_UNKNOWN: { exit: exitCodes.configuration, advice: 'Use the version that wrote it' },
  ENGINE_MISSING: { exit: exitCodes.configuration, advice: 'Install again with optional dependencies' },
  TOKEN_FILE_UNUSABLE: {
    exit: exitCodes.unreachable,
    advice: 'Give it mode 0600, or name another one with --token-file',
  },
  OUTPUT_CLOSED: { exit: exitCodes.pipeClosed, advice: '' },
  UNREACHABLE: { exit: exitCodes.unreachable, advice: 'Check --server and the network between' },
  SERVER_FOREIGN: { exit: exitCodes.unreachable, advice: 'Check --server, and that both sides have the same version' },
  ADDRESS_INVALID: { exit: exitCodes.usage, advice: 'Give --server as http://host:port' },
  ID_AMBIGUOUS: { exit: exitCodes.unknownJob, advice: 'Give more of the id' },
  CALL_UNAUTHENTICATED: { exit: exitCodes.unreachable, advice: 'Check --token-file' },
  CALL_FOREIGN: {
    exit: exitCodes.unreachable,
    advice: 'Call the server by its own address, or add the name to server.hosts',
  },
  SERVER_DRAINING: { exit: exitCodes.unreachable, advice: 'Try again in a moment' },
  SERVER_BUSY: { exit: exitCodes.refused, advice: 'Try again in a moment' },
  SERVER_UNAUTHENTICATED: { exit: exitCodes.configuration, advice: 'Set server.tokens, or listen on 127.0.0.1' },
  ADDRESS_UNUSABLE: { exit: exitCodes.configuration, advice: 'Choose another --port or --host' },
}

/** Faults that say that nobody is there to answer, so that another way may be tried. */
const unreachableCodes = new Set(['UNREACHABLE', 'SERVER_DRAINING'])

export const isUnreachable = (error: unknown): boolean => isFault(error) && unreachableCodes.has(error.code)

export interface Failure {
  readonly exit: number
  /** A whole line, or nothing where there is nobody to read it. */
  readonly line: string
}

/** `command` is the one that was asked for, where the failure does not name one itself. */
export const failureOf = (error: unknown, debug = false, command?: string): Failure => {
  if (error instanceof UsageInvalid) {
    const help = ['millrace', error.command ?? command, '--help'].filter(Boolean).join(' ')
    return { exit: exitCodes.usage, line: lineOf(error.message, `Run ${help}`) }
  }
  if (!isFault(error)) return { exit: exitCodes.internal, line: internal(error, debug) }
  const { exit, advice } = consequences[error.code] ?? {
    exit: exitCodes.failed,
    advice: `docs/faults.md says more about ${error.code}`,
  }
  return { exit, line: exit === exitCodes.pipeClosed ? '' : lineOf(error.message, advice) }
}

/** `millrace: what is wrong. What to do.` */
const lineOf = (what: string, advice: string): string =>
  `${ownMark} ${ended(plainText(what))}${advice === '' ? '' : ` ${advice}.`}\n`

const ended = (sentence: string): string => (/[.?!]$/.test(sentence) ? sentence : `${sentence}.`)

const internal = (error: unknown, debug: boolean): string => {
  const name = error instanceof Error ? error.name : typeof error
  const message = error instanceof Error ? error.message : String(error)
  if (debug && error instanceof Error)
    return (error.stack ?? message)
      .split('\n')
      .map((line) => `${ownMark} ${plainText(line)}\n`)
      .join('')
  return lineOf(`internal error: ${name}: ${message}`, 'This is a bug; MILLRACE_DEBUG=1 shows where it happened')
}
