import { z } from 'zod'

const credentials = z.strictObject({
  accessKeyId: z.string().min(1).describe('The key’s id.'),
  secretAccessKey: z.string().min(1).describe('The key itself.'),
})

export const embeddedOptions = z.strictObject({
  directory: z
    .string()
    .min(1)
    .default('.millrace')
    .describe('The data directory. One process at a time holds it; nobody but its owner can read it.'),
})

export const awsOptions = z.strictObject({
  region: z.string().min(1).default('us-east-1').describe('Where tables and queues are.'),
  endpoint: z
    .strictObject({
      dynamodb: z.url().optional().describe('Another address for the tables.'),
      sqs: z.url().optional().describe('Another address for the queues.'),
    })
    .prefault({})
    .describe('Addresses other than the region’s own: stand-ins on this machine, or private endpoints.'),
  credentials: credentials.optional().describe('Where none are given, they are looked for in the usual places.'),
  tablePrefix: z
    .string()
    .regex(/^[A-Za-z0-9_.-]{0,100}$/, 'letters, digits and _ . -, at most 100')
    .default('millrace_')
    .describe('Stands before the name of every table.'),
  queuePrefix: z
    .string()
    .regex(/^[A-Za-z0-9_-]{0,40}$/, 'letters, digits, _ and -, at most 40')
    .default('millrace-')
    .describe('Stands before the name of every queue.'),
  deadlineMs: z
    .int()
    .min(100)
    .max(300_000)
    .default(10_000)
    .describe('Longest any storage call takes, its retries included.'),
})

export const signingOptions = z.strictObject({
  keys: z
    .array(
      z.strictObject({
        id: z
          .string()
          .regex(/^[A-Za-z0-9]{1,32}$/, '1 to 32 letters or digits')
          .describe('Tells the keys apart.'),
        secret: z.base64().min(44).describe('At least 32 bytes of chance, in base64.'),
      }),
    )
    .max(8)
    .default([])
    .describe(
      'Keys that sign task tokens and page cursors: the first signs, all are accepted. None: one made once and stored.',
    ),
})
