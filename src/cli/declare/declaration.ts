import type { Command } from 'commander'
import type { Host } from '../context.ts'

/** A command by its name, with everything that was parsed for it. What it does is loaded only then. */
export type Perform = (name: CommandName, args: Readonly<Record<string, unknown>>) => Promise<void>

export type CommandName =
  | 'run'
  | 'up'
  | 'server'
  | 'worker'
  | 'submit'
  | 'monitor'
  | 'list'
  | 'show'
  | 'cancel'
  | 'retry'
  | 'dead'
  | 'provision'
  | 'config'

/** What declarations need to know to parse: our own environment, for `--env NAME`. */
export interface Declaring {
  readonly perform: Perform
  readonly env: Host['env']
}

/** Adds commands with their flags and help to a program. Nothing here loads more than the parser. */
export type Declare = (program: Command, declaring: Declaring) => void

/** All flags of a command, those of the program included. */
export const flagsOf = (command: Command): Readonly<Record<string, unknown>> => command.optsWithGlobals()
