import { createClient } from '../../client/connect.ts'
import { unpackChunks } from '../../client/unpack.ts'
import type { Target } from '../context.ts'
import type { JobsClient } from '../jobs-client.ts'
import { jobsOf } from '../jobs-of-client.ts'
import { chunkEvents } from './chunk-events.ts'
import type { BackendDeps } from './ground.ts'

/** Whoever listens answers within this. */
const answerMs = 2_000

/** A server's jobs. Asks for one at once, so that nobody finds out later that nobody answers. */
export const connect = async ({ clock, random }: BackendDeps, { address, token }: Target): Promise<JobsClient> => {
  // Whoever lies in our own directory and is gone will not come back: we could take its place.
  const patience = address.startsWith('unix:') ? { patienceMs: answerMs } : {}
  const client = createClient({ address, token, clock, random, ...patience })
  try {
    await client.probe(answerMs)
  } catch (error) {
    client.close()
    throw error
  }
  return jobsOf(client, (request) => chunkEvents(unpackChunks(client.followBatches(request))))
}
