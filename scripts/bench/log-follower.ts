// Follows jobs from a process of its own: raw batches over the API, whose lines it counts. `log.ts` asks it.

import { createClient } from '../../src/client/connect.ts'
import { systemClock } from '../../src/kernel/clock.ts'
import { systemRandom } from '../../src/kernel/random.ts'
import { eventTypes } from '../../src/log/event.ts'
import { answerQuestions } from './partner.ts'
import type { Place } from './rig.ts'

export interface Followed {
  readonly lines: number
  readonly items: number
  /** Wall times of the first output as it was read, and of when the end of the log was here. */
  readonly firstAt: number
  readonly endedAt: number
}

export interface ToFollow extends Place {
  readonly jobId: string
}

let client: ReturnType<typeof createClient> | undefined

answerQuestions<ToFollow, Followed>(async ({ address, token, jobId }) => {
  client ??= createClient({ address, token, clock: systemClock, random: systemRandom })
  let [lines, items, firstAt, endedAt] = [0, 0, 0, 0]
  for await (const entry of client.followBatches({ jobId })) {
    if (!('item' in entry)) continue
    const { type, sequence, endSequence, timestamp } = entry.item
    items += 1
    if (type === eventTypes.outputBatch || type === eventTypes.output) {
      lines += endSequence - sequence + 1
      if (firstAt === 0) firstAt = timestamp
    }
    if (type === eventTypes.processEnd) endedAt = systemClock.now()
  }
  return { lines, items, firstAt, endedAt }
})
