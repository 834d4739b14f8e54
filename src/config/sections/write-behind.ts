import { z } from 'zod'

export const writeBehindOptions = z.strictObject({
  laterCount: z
    .int()
    .min(1)
    .max(10_000)
    .default(100)
    .describe('How many writes that nobody waits for are collected before they are stored.'),
  laterMs: z.int().min(1).max(60_000).default(5_000).describe('Longest a write that nobody waits for is collected.'),
  heldWrites: z
    .int()
    .min(1_000)
    .max(1_000_000)
    .default(10_000)
    .describe('Writes of each kind held in memory at the most; more callers than that wait.'),
  heldBytes: z
    .int()
    .min(16 * 1_024 * 1_024)
    .max(4 * 1_024 * 1_024 * 1_024)
    .default(64 * 1_024 * 1_024)
    .describe('Bytes of writes of each kind held in memory at the most.'),
  admissionMs: z
    .int()
    .min(10)
    .max(60_000)
    .default(5_000)
    .describe('How long a caller waits for room before it is told to come back later.'),
  flushDeadlineMs: z
    .int()
    .min(100)
    .max(600_000)
    .default(30_000)
    .describe('How long one group of writes may take before its callers are told that the outcome is unknown.'),
})

export type WriteBehindOptions = z.output<typeof writeBehindOptions>
