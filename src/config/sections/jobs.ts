import { z } from 'zod'

const minute = 60_000
const day = 24 * 60 * minute

/** How a worker runs a job. The server decides it and stores it with the job; workers and readers obey the stored one. */
export const executionOptions = z
  .strictObject({
    leaseMs: z
      .int()
      .min(3_000)
      .max(60 * minute)
      .default(minute)
      .describe('How long a job stays with a worker that says nothing. A dead worker is noticed within two of these.'),
    heartbeatMs: z
      .int()
      .min(1_000)
      .max(20 * minute)
      .default(20_000)
      .describe('How often a worker says that it is still there. At most a third of the lease.'),
    flushIntervalMs: z
      .int()
      .min(10)
      .max(minute)
      .default(2_000)
      .describe('Longest an output line waits for company while nobody watches the job.'),
    maxBatchSize: z.int().min(1).max(10_000).default(50).describe('Lines in a stored batch to begin with.'),
    batchSizeBound: z
      .int()
      .min(1)
      .max(10_000)
      .default(2_000)
      .describe('Lines in a stored batch at the most; batches grow up to it while output is fast.'),
    maxBatchBytes: z
      .int()
      .min(1_024)
      .max(380 * 1_024)
      .default(256 * 1_024)
      .describe('Bytes in a stored batch at the most. A stored item may not exceed 400 KB with everything around it.'),
    playbackIntervalMs: z
      .int()
      .min(0)
      .max(minute)
      .default(50)
      .describe('Pause between two lines when a finished job is played back at its usual pace.'),
    graceMs: z
      .int()
      .min(0)
      .max(10 * minute)
      .default(10_000)
      .describe('How long a process that was told to stop may take before it is killed.'),
    maxOutputBytes: z
      .int()
      .min(0)
      .default(0)
      .describe('Output beyond this is cut, with a marker that says how much; 0 is no limit.'),
  })
  .refine((o) => o.heartbeatMs * 3 <= o.leaseMs, {
    path: ['heartbeatMs'],
    error: 'must fit three times into leaseMs, so that two lost heartbeats are survivable',
  })
  .refine((o) => o.maxBatchSize <= o.batchSizeBound, {
    path: ['maxBatchSize'],
    error: 'must not exceed batchSizeBound, where growth ends',
  })

export type ExecutionConfig = z.output<typeof executionOptions>

export const retryOptions = z
  .strictObject({
    maxAttempts: z.int().min(1).max(1_000).default(1).describe('How often a job is tried if its attempts fail.'),
    backoffBaseMs: z
      .int()
      .min(0)
      .max(60 * minute)
      .default(1_000)
      .describe('Longest wait before the second attempt; it doubles for each further one.'),
    backoffCapMs: z
      .int()
      .min(0)
      .max(day)
      .default(5 * minute)
      .describe('No wait between attempts is longer than this.'),
  })
  .refine((o) => o.backoffBaseMs <= o.backoffCapMs, {
    path: ['backoffBaseMs'],
    error: 'must not exceed backoffCapMs',
  })

export type RetryOptions = z.output<typeof retryOptions>

export const jobOptions = z.strictObject({
  queues: z
    .array(
      z
        .string()
        .regex(
          /^(?!.*-(?:high|low|dead)$)[a-z0-9][a-z0-9_-]{0,62}$/,
          'small letters, digits, _ and -, at most 63, and not ending in -high, -low or -dead',
        ),
    )
    .min(1)
    .max(1_000)
    .default(['default'])
    .describe('The queues that exist. A job for any other queue is refused.'),
  execution: executionOptions.prefault({}).describe('What a job gets that asks for nothing else.'),
  retry: retryOptions.prefault({}).describe('How failed attempts are repeated, unless the job says otherwise.'),
  retentionMs: z
    .int()
    .min(minute)
    .max(3_650 * day)
    .default(30 * day)
    .describe('How long an ended job is kept, at least as long as its request id.'),
  requestRetentionMs: z
    .int()
    .min(minute)
    .max(365 * day)
    .default(14 * day)
    .describe('How long a request id is remembered: a second request with the same id gets the first job.'),
  logRetentionMs: z
    .int()
    .min(minute)
    .max(3_650 * day)
    .default(30 * day)
    .describe('How long stored output is kept, counted from when it was stored.'),
  outboxDelayMs: z
    .int()
    .min(1_000)
    .max(60 * minute)
    .default(30_000)
    .describe('How long a job waits for its message before the sweeper looks whether the message was lost.'),
  sweepIntervalMs: z
    .int()
    .min(100)
    .max(10 * minute)
    .default(10_000)
    .describe('Pause between two sweeps for lost workers and lost messages, give or take a half.'),
})

export type JobOptions = z.output<typeof jobOptions>
