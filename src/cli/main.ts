// The command line. What it does is loaded when it is known what to do, so that help comes at once.

import type { CliContext } from './context.ts'
import type { CommandName } from './declare/declaration.ts'
import { exitCodes } from './exit-codes.ts'
import { failureOf } from './failure.ts'
import { Answered, createProgram, requireDashes } from './program.ts'
import { version } from './version.ts'

type Args = Readonly<Record<string, unknown>>
type Run = (context: CliContext, args: never) => Promise<number>

const commands: Readonly<Record<CommandName, () => Promise<{ readonly run: Run }>>> = {
  run: () => import('./commands/run.ts'),
  up: () => import('./commands/up.ts'),
  server: () => import('./commands/server.ts'),
  worker: () => import('./commands/worker.ts'),
  submit: () => import('./commands/submit.ts'),
  monitor: () => import('./commands/monitor.ts'),
  list: () => import('./commands/list.ts'),
  show: () => import('./commands/show.ts'),
  cancel: () => import('./commands/cancel.ts'),
  retry: () => import('./commands/retry.ts'),
  dead: () => import('./commands/dead.ts'),
  provision: () => import('./commands/provision.ts'),
  config: () => import('./commands/config.ts'),
}

export interface MainDeps {
  readonly argv: readonly string[]
  readonly env: Readonly<Record<string, string | undefined>>
  readonly columns: number | undefined
  readonly print: (text: string) => void
  readonly complain: (text: string) => void
  /** Made only when there is something to do. */
  readonly context: () => Promise<CliContext>
}

/** Does what the arguments say. Resolves with the exit code; complains in one line if it is not 0 for a reason of our own. */
export const main = async (deps: MainDeps): Promise<number> => {
  let exit: number = exitCodes.ok
  const perform = async (name: CommandName, args: Args) => {
    if (name === 'run' || name === 'submit') requireDashes(deps.argv, args['command'] as readonly string[], name)
    const [context, command] = await Promise.all([deps.context(), commands[name]()])
    exit = await command.run(context, args as never)
  }
  try {
    const { env, columns, print } = deps
    await createProgram({ perform, env, columns, print, version }).parseAsync([...deps.argv], { from: 'user' })
    return exit
  } catch (error) {
    if (error instanceof Answered) return exitCodes.ok
    const failure = failureOf(error, deps.env['MILLRACE_DEBUG'] === '1', askedFor(deps.argv))
    if (failure.line !== '') deps.complain(failure.line)
    return failure.exit
  }
}

const askedFor = (argv: readonly string[]): string | undefined => {
  const dashes = argv.indexOf('--')
  return argv.slice(0, dashes === -1 ? argv.length : dashes).find((word) => Object.hasOwn(commands, word))
}
