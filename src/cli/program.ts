// The program: every command with its flags and help. Parsing is here, doing is elsewhere.

import { Command, type CommanderError, Option } from 'commander'
import type { Declaring } from './declare/declaration.ts'
import { declareJobs } from './declare/jobs.ts'
import { declareServices } from './declare/services.ts'
import { declareTools } from './declare/tools.ts'
import { UsageInvalid } from './faults.ts'
import { collectSet, parsePath, parseServer } from './parse/words.ts'

/** Help or the version was asked for and has been printed: there is nothing more to do. */
export class Answered extends Error {
  override readonly name = 'Answered'
}

export interface ProgramDeps extends Declaring {
  readonly version: string
  readonly print: (text: string) => void
  /** Columns of the terminal, undefined where it is none. */
  readonly columns: number | undefined
}

export const createProgram = (deps: ProgramDeps): Command => {
  const program = new Command('millrace')
    .description('A durable job runtime: submit, run, watch live, replay from any line.')
    .version(deps.version, '-V, --version', 'the version')
    .helpOption('-h, --help', 'this help')
    .helpCommand('help [command]', 'help for a command')
    .option('--config <file>', 'the configuration, ./millrace.yaml if not said otherwise', parsePath('--config'))
    .option('--data-dir <directory>', 'where jobs live, the usual place if not said otherwise', parsePath('--data-dir'))
    .addOption(new Option('--profile <name>', 'where jobs live: embedded, aws or memory'))
    .option('--set <key=value>', 'any option of docs/options.md; may be repeated', collectSet)
    .option('--server <url>', 'talk to this server instead of the data directory', parseServer)
    .option('--token-file <file>', 'the file with its token', parsePath('--token-file'))
    .option('--json', 'one JSON object on a line')
    .option('--color', 'colours also where there is no terminal')
    .option('--no-color', 'no colours')
    .option('-q, --quiet', 'say nothing but what was asked for')
  // Neither said: as the terminal is.
  program.setOptionValueWithSource('color', undefined, 'default')
  declareJobs(program, deps)
  declareServices(program, deps)
  declareTools(program, deps)
  program.addHelpText('after', '\nThe first thing to try: millrace run -- echo hello')
  guard(program, deps, [])
  return program
}

/** The parser's own ways to end a process become values, for a command and all below it. */
const guard = (command: Command, deps: ProgramDeps, path: readonly string[]): void => {
  const columns = deps.columns
  command
    .showSuggestionAfterError(true)
    .configureHelp({ showGlobalOptions: path.length > 0, ...(columns === undefined ? {} : { helpWidth: columns }) })
    .configureOutput({
      writeOut: deps.print,
      writeErr: () => {},
      getOutHasColors: () => false,
      getErrHasColors: () => false,
    })
    .exitOverride((error) => {
      throw translated(error, path.join(' '))
    })
  for (const below of command.commands) guard(below, deps, [...path, below.name()])
}

const translated = (error: CommanderError, command: string): Error => {
  if (error.exitCode === 0) return new Answered()
  // The parser would print the whole help where it wants a command.
  if (error.code === 'commander.help')
    return new UsageInvalid('a command is missing', command === '' ? {} : { command })
  const text = error.message
    .replace(/^error: /, '')
    .split('\n')
    .join(' ')
  // An unknown flag is named without what stands behind its =, which could be a secret.
  const safe = text.replaceAll(/'(--?[\w-]+)=[^']*'/g, "'$1'")
  return new UsageInvalid(safe.replace(/\.$/, ''), { ...(command === '' ? {} : { command }), cause: error })
}

/**
 * What `run` and `submit` are to run stands behind `--`. Without it our own flags would be taken out of the command's: in
 * `millrace run grep -q x` the -q would be ours, and nobody would notice.
 */
export const requireDashes = (argv: readonly string[], command: readonly string[], name: string): void => {
  if (command.length > 0 && !argv.includes('--'))
    throw new UsageInvalid(`put -- before the command, as in millrace ${name} -- echo hello`, { command: name })
}
