// Follows a job that prints the time, from a process of its own, and says how long each line took. `latency.ts` asks it.

import { createClient } from '../../src/client/connect.ts'
import { systemClock } from '../../src/kernel/clock.ts'
import { systemRandom } from '../../src/kernel/random.ts'
import { eachOutput } from '../../src/log/stored-batch.ts'
import type { ToFollow } from './log-follower.ts'
import { answerQuestions } from './partner.ts'

/** Milliseconds from printed to seen, line by line. */
answerQuestions<ToFollow, readonly number[]>(async ({ address, token, jobId }) => {
  const client = createClient({ address, token, clock: systemClock, random: systemRandom })
  const took: number[] = []
  for await (const entry of client.followBatches({ jobId })) {
    if (!('item' in entry)) continue
    const seenAt = process.hrtime.bigint()
    eachOutput(entry.item, (_, data, start, end) => {
      const printedAt = BigInt(Buffer.from(data.subarray(start, end)).toString().trim())
      took.push(Number(seenAt - printedAt) / 1e6)
    })
  }
  client.close()
  return took
})
