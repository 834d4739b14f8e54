import { z } from 'zod'

/** How a process runs jobs. */
export const workerOptions = z.strictObject({
  slots: z
    .int()
    .min(1)
    .max(10_000)
    .default(8)
    .describe(
      'How many jobs run at the same time. Handlers that answer at once can do with hundreds, programs cannot.',
    ),
  queues: z
    .array(z.string().min(1))
    .max(1_000)
    .default([])
    .describe('The queues that jobs are taken from; none named are all there are.'),
  pollMs: z.int().min(100).max(20_000).default(20_000).describe('How long one question for jobs waits for an answer.'),
  drainGraceMs: z
    .int()
    .min(0)
    .max(60 * 60_000)
    .default(10_000)
    .describe('How long running jobs may go on when the worker is to stop, before they are told to and given back.'),
  outputGraceMs: z
    .int()
    .min(0)
    .max(60_000)
    .default(2_000)
    .describe('How long output is taken from what a program leaves behind when it ends; then it is cut and killed.'),
  environment: z
    .array(z.string().regex(/^[A-Za-z_][A-Za-z0-9_]*\*?$/, 'a name, or the beginning of one and *'))
    .max(1_000)
    .default([
      'PATH',
      'HOME',
      'USER',
      'LOGNAME',
      'SHELL',
      'LANG',
      'LANGUAGE',
      'LC_*',
      'TZ',
      'TMPDIR',
      'TERM',
      'COLORTERM',
      'NO_COLOR',
    ])
    .describe('What programs get to see of the environment of this process. The job adds its own.'),
})

export type WorkerOptions = z.output<typeof workerOptions>
