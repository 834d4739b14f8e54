import { z } from 'zod'
import { jobOptions } from './sections/jobs.ts'
import { writeBehindOptions } from './sections/write-behind.ts'

/** Every option there is: type, default, limits and prose, each declared once in its section. */
export const options = z.strictObject({
  jobs: jobOptions.prefault({}).describe('Jobs, their leases, retries and retention.'),
  writeBehind: writeBehindOptions.prefault({}).describe('How writes are collected on their way to the store.'),
})

export type Options = z.output<typeof options>
