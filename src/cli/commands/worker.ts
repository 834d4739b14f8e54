import type { CliContext } from '../context.ts'
import { UsageInvalid } from '../faults.ts'
import { targetOf } from '../reach.ts'
import { jsonLine } from '../render/plain-text.ts'
import { serveUntilStopped } from '../service.ts'
import { type GlobalFlags, loadSettings } from '../settings.ts'
import { sayer, serviceOptions } from './up.ts'

export interface WorkerArgs extends GlobalFlags {
  readonly slots?: number
  readonly queue?: readonly string[]
  readonly handlers?: readonly string[]
}

/** Workers for a server elsewhere. */
export const run = async (context: CliContext, args: WorkerArgs): Promise<number> => {
  const settings = await loadSettings(context, args, serviceOptions(args))
  const { server } = settings
  if (server === undefined)
    throw new UsageInvalid('a worker needs --server URL; `millrace up` has workers of its own', { command: 'worker' })
  const target = await targetOf(context, settings, server)
  const say = sayer(context, settings)
  return serveUntilStopped(
    context,
    () => context.backend.work(settings.options, target, { handlers: args.handlers ?? [] }),
    async () => {
      if (settings.json) await context.stdout.write(jsonLine({ ready: true, server }))
      else await say(`working for ${server}`)
    },
    say,
  )
}
