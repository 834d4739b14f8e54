// The commands that make jobs and watch them.

import type { Command } from 'commander'
import { priorities } from '../job-words.ts'
import { filterWords } from '../log-event.ts'
import { parseDuration, parseFactor, parseSize, parseWhole } from '../parse/quantities.ts'
import { parseMoment } from '../parse/time.ts'
import { collectChoices, collectEnv, parseChoice, parseJobId, parsePath } from '../parse/words.ts'
import { type Declare, type Declaring, flagsOf } from './declaration.ts'

const words = Object.keys(filterWords) as (keyof typeof filterWords)[]

export const declareJobs: Declare = (program, declaring) => {
  const { perform } = declaring
  const run = program
    .command('run')
    .summary('run a command and print what it prints')
    .description('Runs a command as a job in this process, prints its output live and ends with its exit code.')
    .argument('<command...>', 'the command and its arguments, behind --')
  jobFlags(run, declaring)
  rawFlags(run)
  run.action((command: string[]) => perform('run', { ...flagsOf(run), command }))

  const submit = program
    .command('submit')
    .summary('make a job and print its id')
    .description('Makes a job of a command, or of a handler with its input, and prints its id.')
    .argument('[command...]', 'the command and its arguments, behind --')
  jobFlags(submit, declaring)
  submit
    .option(
      '--delay <duration>',
      'how long the job waits first, such as 10m',
      parseDuration('--delay', { max: 2 ** 52 }),
    )
    .option('--handler <name>', 'a function that the workers know by this name, instead of a command')
    .option('--input <json>', 'what the handler gets')
    .option('--wait', 'wait for the end and exit as the command did')
    .option('--follow', 'print the output meanwhile')
  rawFlags(submit)
  submit.action((command: string[]) => perform('submit', { ...flagsOf(submit), command }))

  const monitor = program
    .command('monitor')
    .summary('watch what a job prints, live or again')
    .description(
      'Prints what a job wrote and, as long as it runs, what it writes. A job that has ended is played back: on a terminal with its playback interval between the lines, elsewhere at once.',
    )
    .argument('<job>', 'the id of a job, or how it begins', parseJobId)
    .option('--from <event>', 'begin at this event, numbered from 1', parseWhole('--from', 1, Number.MAX_SAFE_INTEGER))
    .option('--attempt <number>', 'another attempt than the current one', parseWhole('--attempt', 1, 2 ** 32 - 1))
    .option('--since <time>', 'only what happened since then: 5m, or a time in UTC', parseMoment('--since'))
    .option('--filter <kinds>', `only these, with commas: ${words.join(', ')}`, collectChoices('--filter', words))
    .option('--fast', 'play back without pauses')
    .option('--slow [times]', 'play back slower, 2 times if not said otherwise', parseFactor('--slow'))
    .option('--recorded', 'play back with the pauses that the job made itself')
    .option('--no-follow', 'end with what is stored now')
  rawFlags(monitor)
  monitor.action((job: string) => perform('monitor', { ...flagsOf(monitor), job }))
}

const jobFlags = (command: Command, { env }: Declaring): Command =>
  command
    .option('--queue <name>', 'the queue, `default` if not said otherwise')
    .option('--env <KEY=VALUE>', 'a variable for the command; KEY alone takes it from here', collectEnv('--env', env))
    .option('--cwd <directory>', 'where the command runs, here if not said otherwise', parsePath('--cwd'))
    .option('--stdin', 'read standard input to its end and give it to the command')
    .option(
      '--timeout <duration>',
      'the time limit of each attempt, such as 30s',
      parseDuration('--timeout', { min: 1 }),
    )
    .option('--retries <number>', 'how often the job is tried again if it fails', parseWhole('--retries', 0, 999))
    .option('--max-output <size>', 'output beyond this is cut, such as 10MB', parseSize('--max-output'))
    .option('--priority <class>', priorities.join(', '), parseChoice('--priority', priorities))
    .option('--request-id <text>', 'any number of requests with one id make one job')

const rawFlags = (command: Command): Command =>
  command
    .option('--raw', 'exactly the bytes of the job, escape sequences included; not to a terminal')
    .option('--raw-tty', 'the same, to a terminal too')
