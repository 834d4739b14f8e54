// What `run` and `submit` have in common: from flags to a request, and how its output is shown.

import { resolve } from 'node:path'
import type { CliContext } from './context.ts'
import { UsageInvalid } from './faults.ts'
import type { Priority } from './job-words.ts'
import type { Json, SubmitRequest } from './jobs-client.ts'
import { createScreen, type Screen } from './render/screen.ts'
import { colourChoices, type GlobalFlags } from './settings.ts'
import type { Ending } from './watch-log.ts'

export interface JobFlags {
  readonly command: readonly string[]
  readonly queue?: string
  readonly env?: Readonly<Record<string, string>>
  readonly cwd?: string
  readonly stdin?: boolean
  readonly timeout?: number
  readonly retries?: number
  readonly maxOutput?: number
  readonly delay?: number
  readonly priority?: Priority
  readonly requestId?: string
  readonly handler?: string
  readonly input?: string
}

const stdinBytesMax = 256 * 1_024

/** The request, with a request id of its own unless one was given: repeating it is always safe. */
export const submitRequest = async (
  context: CliContext,
  flags: JobFlags,
  environment: Readonly<Record<string, string>>,
): Promise<SubmitRequest> => ({
  queue: flags.queue ?? 'default',
  params: flags.handler === undefined ? await command(context, flags, environment) : handler(flags, flags.handler),
  requestId: flags.requestId ?? Buffer.from(context.random.bytes(16)).toString('hex'),
  ...(flags.priority === undefined ? {} : { priority: flags.priority }),
  ...(flags.delay === undefined ? {} : { delayMs: flags.delay }),
  ...(flags.timeout === undefined ? {} : { timeoutMs: flags.timeout }),
  ...(flags.maxOutput === undefined ? {} : { execution: { maxOutputBytes: flags.maxOutput } }),
  ...(flags.retries === undefined ? {} : { retry: { maxAttempts: flags.retries + 1 } }),
})

const command = async (
  { host, stdin }: CliContext,
  flags: JobFlags,
  environment: Readonly<Record<string, string>>,
): Promise<SubmitRequest['params']> => {
  const { command: argv } = flags
  if (argv.length === 0) throw new UsageInvalid('there is no command; it stands behind --, as in -- echo hello')
  if (flags.input !== undefined) throw new UsageInvalid('--input goes with --handler; a command reads --stdin')
  if (argv.some((argument) => argument.includes('\0'))) throw new UsageInvalid('an argument has no NUL in it')
  const env = { ...environment, ...flags.env }
  return {
    kind: 'command',
    argv,
    cwd: resolve(host.cwd, flags.cwd ?? '.'),
    ...(Object.keys(env).length === 0 ? {} : { env }),
    ...(flags.stdin === true ? { stdin: text(await stdin.readAll(stdinBytesMax)) } : {}),
  }
}

/** A job's standard input is stored as text. */
const text = (bytes: Uint8Array): string => {
  const read = Buffer.from(bytes).toString()
  if (!Buffer.from(read).equals(bytes)) throw new UsageInvalid('--stdin takes text in UTF-8', { field: '--stdin' })
  return read
}

const handler = ({ command: argv, input, env, cwd, stdin }: JobFlags, name: string): SubmitRequest['params'] => {
  if (argv.length > 0) throw new UsageInvalid('a job is a command or a --handler, not both')
  if (env !== undefined || cwd !== undefined || stdin !== undefined)
    throw new UsageInvalid('--env, --cwd and --stdin are for commands; a handler gets --input')
  return { kind: 'handler', name, input: input === undefined ? null : json(input) }
}

const json = (input: string): Json => {
  try {
    return JSON.parse(input) as Json
  } catch (cause) {
    throw new UsageInvalid('--input takes JSON, such as \'{"name":"Ada"}\'', { field: '--input', cause })
  }
}

export interface RawFlags {
  readonly raw?: boolean
  readonly rawTty?: boolean
}

export const jobScreen = (context: CliContext, flags: GlobalFlags & RawFlags): Screen => {
  const raw = flags.raw === true || flags.rawTty === true
  const isTerminal = context.stdout.isTerminal || context.stderr.isTerminal
  if (raw && isTerminal && flags.rawTty !== true)
    throw new UsageInvalid('--raw would let the job control this terminal; redirect both outputs, or use --raw-tty')
  const colours = colourChoices(context, flags)
  return createScreen(context, {
    raw,
    jobColours: colours.job,
    ownColours: colours.stderr,
    quiet: flags.quiet === true,
  })
}

/** How a job ended, in a few words. */
export const jobTitle = (jobId: string, { state, exitCode, signal, error }: Ending): string => {
  const how =
    error ??
    (signal ? `ended by ${signal}` : exitCode === undefined || exitCode === 0 ? undefined : `exit code ${exitCode}`)
  return [`job ${jobId} ${state}`, how].filter(Boolean).join(': ')
}
