import type { CliContext, Service } from '../context.ts'
import { jsonLine } from '../render/plain-text.ts'
import { serveUntilStopped } from '../service.ts'
import { type GlobalFlags, loadSettings, type OptionFlags, type Settings } from '../settings.ts'

export interface UpArgs extends GlobalFlags {
  readonly host?: string
  readonly port?: number
  readonly slots?: number
  readonly queue?: readonly string[]
  readonly handlers?: readonly string[]
}

/** Server, workers and store in one process, until it is told to stop. */
export const run = async (context: CliContext, args: UpArgs): Promise<number> => serve(context, args, true)

export const serve = async (context: CliContext, args: UpArgs, workers: boolean): Promise<number> => {
  const settings = await loadSettings(context, args, serviceOptions(args))
  const say = sayer(context, settings)
  for (const note of settings.notes) await say(note)
  return serveUntilStopped(
    context,
    () => context.backend.serve(settings.options, { workers, handlers: args.handlers ?? [] }),
    (service) => announce(context, settings, service, say),
    say,
  )
}

/** Flags that stand for options, so that `config print` and the file know the same names. */
export const serviceOptions = ({ host, port, slots, queue }: UpArgs): OptionFlags => [
  ['server.host', host, '--host'],
  ['server.port', port, '--port'],
  ['worker.slots', slots, '--slots'],
  ['worker.queues', queue, '--queue'],
]

export const sayer =
  ({ stderr }: CliContext, { quiet }: Settings) =>
  async (text: string): Promise<void> => {
    if (!quiet) await stderr.write(`millrace: ${text}\n`)
  }

/** Where it listens, and how to give it work. */
const announce = async (
  { stdout }: CliContext,
  settings: Settings,
  { addresses }: Service,
  say: (text: string) => Promise<void>,
): Promise<void> => {
  if (settings.json) {
    await stdout.write(jsonLine({ ready: true, addresses }))
    return
  }
  const [address] = addresses
  await say(`ready${address === undefined ? '' : ` on ${addresses.join(' and ')}`}`)
  await say('give it work with: millrace submit --follow -- echo hello')
}
