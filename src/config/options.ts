import { z } from 'zod'
import { jobOptions } from './sections/jobs.ts'
import { serverOptions } from './sections/server.ts'
import { awsOptions, embeddedOptions, signingOptions } from './sections/storage.ts'
import { workerOptions } from './sections/worker.ts'
import { writeBehindOptions } from './sections/write-behind.ts'

/** Every option there is: type, default, limits and prose, each declared once in its section. */
export const options = z.strictObject({
  profile: z
    .enum(['embedded', 'aws', 'memory'])
    .default('embedded')
    .describe(
      'Where jobs live: in a directory of this machine, in DynamoDB and SQS, or nowhere longer than the process.',
    ),
  embedded: embeddedOptions.prefault({}).describe('The store in a directory of this machine.'),
  aws: awsOptions.prefault({}).describe('The store in DynamoDB and SQS.'),
  signing: signingOptions.prefault({}).describe('How what leaves the process and comes back is recognised.'),
  server: serverOptions.prefault({}).describe('The API.'),
  worker: workerOptions.prefault({}).describe('How this process runs jobs.'),
  jobs: jobOptions.prefault({}).describe('Jobs, their leases, retries and retention.'),
  writeBehind: writeBehindOptions.prefault({}).describe('How writes are collected on their way to the store.'),
})

export type Options = z.output<typeof options>
