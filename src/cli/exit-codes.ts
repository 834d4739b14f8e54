import { constants } from 'node:os'

/** Every way `millrace` ends that is not the exit code of a command it ran. docs/cli.md lists them, and a test compares. */
export const exitCodes = {
  ok: 0,
  failed: 1,
  usage: 2,
  configuration: 3,
  unreachable: 4,
  unknownJob: 5,
  refused: 6,
  cancelled: 7,
  timeLimit: 124,
  internal: 125,
  interrupted: 130,
  pipeClosed: 141,
  terminated: 143,
} as const

export const exitMeanings: Readonly<Record<keyof typeof exitCodes, string>> = {
  ok: 'It worked; the command of the job ended with 0.',
  failed: 'It did not work, or the job failed without an exit code of its own.',
  usage: 'A flag or an argument is wrong.',
  configuration: 'An option is wrong, or the data directory cannot be used.',
  unreachable: 'Nobody answers there, or the token is not accepted.',
  unknownJob: 'There is no such job, or its id is too short to be the only one.',
  refused: 'The server refused the request as it is.',
  cancelled: 'The job was cancelled by somebody else before its command ran.',
  timeLimit: 'The job was stopped because its time limit had passed.',
  internal: 'A bug in Millrace.',
  interrupted: 'Stopped by Ctrl-C; in general 128 and the number of the signal.',
  pipeClosed: 'Whoever read the output has gone away.',
  terminated: 'Stopped by SIGTERM.',
}

/** As shells do it. A signal that this platform has no number for is a plain failure. */
export const exitCodeOfSignal = (signal: string): number => {
  const number = (constants.signals as Readonly<Record<string, number>>)[signal]
  return number === undefined ? exitCodes.failed : 128 + number
}

/** What is known of a job when it has ended. */
export interface JobEnding {
  readonly state: string
  /** The last PROCESS_END, if there was one. */
  readonly exitCode?: number | undefined
  readonly signal?: string | undefined
  /** How long its last attempt ran, and how long it might have. */
  readonly ranMs?: number | undefined
  readonly timeoutMs?: number | undefined
}

/** How `run` and `submit --wait` end: as the command did, so that scripts need not know that we stood in between. */
export const exitCodeOf = ({ state, exitCode, signal, ranMs, timeoutMs }: JobEnding): number => {
  if (state === 'COMPLETED') return exitCodes.ok
  const bySignal = signal ? exitCodeOfSignal(signal) : undefined
  if (state === 'CANCELLED') return bySignal ?? exitCodes.cancelled
  const tookTooLong = timeoutMs !== undefined && timeoutMs > 0 && ranMs !== undefined && ranMs >= timeoutMs
  if (tookTooLong) return exitCodes.timeLimit
  if (bySignal !== undefined) return bySignal
  // Windows has larger exit codes; what a shell would see of them could be 0.
  return exitCode !== undefined && exitCode > 0 && exitCode < 256 ? exitCode : exitCodes.failed
}
