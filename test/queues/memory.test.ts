import { expect, test } from 'vitest'
import { createMemoryQueue } from '../../src/queues/memory.ts'
import { createVirtualClock } from '../../src/sim/virtual-clock.ts'
import { queueContract } from '../contract/queue.ts'

queueContract(
  'memory',
  async ({ holdMs }) => {
    const clock = createVirtualClock()
    const queue = createMemoryQueue({ clock }, { holdMs })
    return {
      queue,
      name: 'mail',
      now: clock.now,
      elapse: clock.advance,
      inject: async (body) => queue.inject('mail', 'normal', body),
      end: async () => {
        await queue.close()
        expect(clock.timers).toBe(0)
      },
    }
  },
  { clock: 'virtual', order: 'exact', stepMs: 1_000, patienceMs: 20_000 },
)

test('the same message sent twice is received twice', async () => {
  const queue = createMemoryQueue({ clock: createVirtualClock() })
  const outgoing = {
    message: { jobId: 'a', queue: 'mail', priority: 'normal', attempt: 0 },
    notBefore: 0,
  } as const
  await queue.send([outgoing, outgoing])
  expect(await queue.receive('mail', { max: 10, waitMs: 0 })).toHaveLength(2)
})
