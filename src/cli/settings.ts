// From flags, variables and the configuration file to what a command works with.

import { isAbsolute, join, resolve } from 'node:path'
import type { Effective } from '../config/sources.ts'
import type { CliContext } from './context.ts'
import { UsageInvalid } from './faults.ts'
import type { Assignment } from './parse/words.ts'
import { parsePath, parseServer } from './parse/words.ts'
import { usualConfigFile, usualDataDir } from './places.ts'
import { wantsColour } from './render/colours.ts'

/** Flags that every command takes. */
export interface GlobalFlags {
  readonly config?: string
  readonly dataDir?: string
  readonly profile?: string
  readonly set?: readonly Assignment[]
  readonly server?: string
  readonly tokenFile?: string
  readonly json?: boolean
  readonly color?: boolean
  readonly quiet?: boolean
}

/** Flags of a command that stand for options: the option's key, the value, the flag. */
export type OptionFlags = readonly (readonly [key: string, value: unknown, flag: string])[]

export interface Settings extends Effective {
  readonly dataDir: string
  readonly server: string | undefined
  readonly tokenFile: string | undefined
  readonly json: boolean
  readonly quiet: boolean
}

/** Where the configuration is, if there is one. A file that was named must be there; others may. */
const findConfig = async (
  { host, files }: Pick<CliContext, 'host' | 'files'>,
  flags: Pick<GlobalFlags, 'config'>,
): Promise<{ readonly path: string; readonly text: string } | undefined> => {
  const named = flags.config ?? (host.env['MILLRACE_CONFIG'] || undefined)
  if (named !== undefined) {
    const text = await files.readText(resolve(host.cwd, named))
    if (text === undefined) throw new UsageInvalid(`there is no configuration file ${named}`, { field: '--config' })
    return { path: named, text }
  }
  for (const path of [join(host.cwd, 'millrace.yaml'), usualConfigFile(host)]) {
    const text = await files.readText(path)
    if (text !== undefined) return { path, text }
  }
  return undefined
}

/** Every source there is, for `loadSources` or `checkSources`. */
export const gatherSources = async (
  context: Pick<CliContext, 'host' | 'files'>,
  flags: GlobalFlags,
  own: OptionFlags = [],
) => ({
  file: await findConfig(context, flags),
  env: context.host.env,
  flags: [
    ...(flags.set ?? []).map(({ key, text }) => ({ key, value: text as unknown, flag: '--set' })),
    ...given('profile', flags.profile, '--profile'),
    ...given('embedded.directory', flags.dataDir, '--data-dir'),
    ...own.flatMap(([key, value, flag]) => given(key, value, flag)),
  ],
  usualDataDir: usualDataDir(context.host),
})

const given = (key: string, value: unknown, flag: string) => (value === undefined ? [] : [{ key, value, flag }])

export const loadSettings = async (
  context: Pick<CliContext, 'host' | 'files'>,
  flags: GlobalFlags,
  own: OptionFlags = [],
): Promise<Settings> => {
  const { host } = context
  const sources = await gatherSources(context, flags, own)
  // Loaded here, because its schema is more than `--help` wants to wait for.
  const { loadSources } = await import('../config/sources.ts')
  const effective = loadSources(sources)
  const { directory } = effective.options.embedded
  const server = flags.server ?? (host.env['MILLRACE_SERVER'] || undefined)
  const tokenFile = flags.tokenFile ?? (host.env['MILLRACE_TOKEN_FILE'] || undefined)
  return {
    ...effective,
    dataDir: isAbsolute(directory) ? directory : resolve(host.cwd, parsePath('--data-dir')(directory)),
    server: server === undefined ? undefined : parseServer(server),
    tokenFile: tokenFile === undefined ? undefined : resolve(host.cwd, parsePath('--token-file')(tokenFile)),
    json: flags.json === true,
    quiet: flags.quiet === true,
  }
}

/** What goes to stderr is coloured if stderr is a terminal, what goes to stdout if stdout is one. */
export const colourChoices = ({ stdout, stderr, host }: CliContext, flags: Pick<GlobalFlags, 'color'>) => ({
  stdout: wantsColour(stdout, host.env, flags.color),
  stderr: wantsColour(stderr, host.env, flags.color),
  /** A job's own colours pass, unless somebody said that they want none. */
  job: flags.color ?? !host.env['NO_COLOR'],
})
