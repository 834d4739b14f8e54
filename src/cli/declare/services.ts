// The commands that run until they are stopped.

import type { Command } from 'commander'
import { parseWhole } from '../parse/quantities.ts'
import { collect } from '../parse/words.ts'
import { type Declare, flagsOf } from './declaration.ts'

export const declareServices: Declare = (program, { perform }) => {
  const up = program
    .command('up')
    .summary('server, workers and store, until stopped')
    .description(
      'Runs server, workers and store in this process. The first Ctrl-C ends what is under way, the second one stops at once.',
    )
  listenFlags(up)
  workerFlags(up)
  up.action(() => perform('up', flagsOf(up)))

  const server = program
    .command('server')
    .summary('the server alone')
    .description('Runs the server and the store; workers connect to it with `millrace worker`.')
  listenFlags(server)
  server.action(() => perform('server', flagsOf(server)))

  const worker = program
    .command('worker')
    .summary('workers for a server elsewhere')
    .description('Runs jobs for the server that --server names.')
  workerFlags(worker)
  worker.action(() => perform('worker', flagsOf(worker)))
}

const listenFlags = (command: Command): Command =>
  command
    .option('--host <address>', 'where to listen, this machine alone if not said otherwise')
    .option('--port <number>', 'where to listen; 0 takes any free one', parseWhole('--port', 0, 65_535))

const workerFlags = (command: Command): Command =>
  command
    .option('--slots <number>', 'how many jobs run at once', parseWhole('--slots', 1, 10_000))
    .option('--queue <name>', 'work for this queue alone; may be repeated', collect)
    .option('--handlers <module>', 'a module that exports handlers; may be repeated', collect)
