// The commands that look at jobs, change them, and look after the installation.

import { jobStates } from '../job-words.ts'
import { parseWhole } from '../parse/quantities.ts'
import { parseMoment } from '../parse/time.ts'
import { parseChoice, parseJobId } from '../parse/words.ts'
import { type Declare, flagsOf } from './declaration.ts'

const collectIds = (text: string, before: readonly string[] = []): readonly string[] => [...before, parseJobId(text)]

export const declareTools: Declare = (program, { perform }) => {
  const list = program
    .command('list')
    .summary('jobs, newest first')
    .description('Lists jobs, the newest first.')
    .option('--queue <name>', 'of this queue')
    .option('--state <state>', `in this state: ${jobStates.join(', ')}`, parseChoice('--state', jobStates))
    .option('--since <time>', 'made since then: 5m, or a time in UTC', parseMoment('--since'))
    .option('--until <time>', 'made before then', parseMoment('--until'))
    .option('--limit <number>', 'how many, 20 if not said otherwise', parseWhole('--limit', 1, 100_000))
    .option('--ascending', 'the oldest first')
    .option('--watch', 'go on and show what changes')
  list.action(() => perform('list', flagsOf(list)))

  const show = program
    .command('show')
    .summary('everything about one job')
    .description(
      'Shows everything about a job but its output. Values of its environment and what looks like a secret are hidden.',
    )
    .argument('<job>', 'the id of a job, or how it begins', parseJobId)
  show.action((job: string) => perform('show', { ...flagsOf(show), job }))

  const cancel = program
    .command('cancel')
    .summary('stop jobs')
    .description('Ends jobs that wait, and asks those that run to stop.')
    .argument('<jobs...>', 'ids of jobs, or how they begin', collectIds)
  cancel.action((jobs: string[]) => perform('cancel', { ...flagsOf(cancel), jobs }))

  const retry = program
    .command('retry')
    .summary('start ended jobs again')
    .description('Starts jobs again that have failed or were cancelled: the same jobs, their next run.')
    .argument('<jobs...>', 'ids of jobs, or how they begin', collectIds)
  retry.action((jobs: string[]) => perform('retry', { ...flagsOf(retry), jobs }))

  const dead = program
    .command('dead')
    .summary('what failed for good')
    .description('Failed jobs and unreadable messages.')
  const deadList = dead
    .command('list')
    .summary('failed jobs and unreadable messages')
    .description('Lists failed jobs and messages that nobody could read.')
    .option('--queue <name>', 'of this queue')
    .option('--since <time>', 'made since then: 5m, or a time in UTC', parseMoment('--since'))
    .option('--limit <number>', 'how many, 20 if not said otherwise', parseWhole('--limit', 1, 100_000))
  deadList.action(() => perform('dead', { ...flagsOf(deadList), action: 'list' }))
  const redrive = dead
    .command('redrive')
    .summary('start failed jobs again')
    .description('Starts failed jobs again: those that are named, or all of them.')
    .argument('[jobs...]', 'ids of jobs, or how they begin', collectIds)
    .option('--all', 'all failed jobs')
    .option('--queue <name>', 'with --all: of this queue')
    .option('--since <time>', 'with --all: made since then', parseMoment('--since'))
    .option('--limit <number>', 'with --all: how many at the most', parseWhole('--limit', 1, 100_000))
  redrive.action((jobs: string[]) => perform('dead', { ...flagsOf(redrive), jobs, action: 'redrive' }))

  const provision = program
    .command('provision')
    .summary('make tables and queues on AWS')
    .description('Makes the tables and queues that the configuration names. Doing it again changes nothing.')
    .option('--dry-run', 'only say what would be done')
    .option('--cloudformation', 'print a CloudFormation template instead')
  provision.action(() => perform('provision', flagsOf(provision)))

  const config = program.command('config').summary('check or print the configuration').description('The configuration.')
  const check = config
    .command('check')
    .summary('say everything that is wrong')
    .description('Reads file, variables and flags, and says everything that is wrong with them.')
  check.action(() => perform('config', { ...flagsOf(check), action: 'check' }))
  const print = config
    .command('print')
    .summary('every option, its value, where it comes from')
    .description('Prints every option with its value and where it comes from. Secrets are hidden.')
  print.action(() => perform('config', { ...flagsOf(print), action: 'print' }))
}
