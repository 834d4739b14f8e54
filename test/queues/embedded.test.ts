import { expect } from 'vitest'
import { createEmbeddedQueue, queueTable } from '../../src/queues/embedded.ts'
import { createVirtualClock } from '../../src/sim/virtual-clock.ts'
import { createMemoryTables } from '../../src/tables/memory.ts'
import { queueContract } from '../contract/queue.ts'

queueContract(
  'embedded',
  async ({ holdMs }) => {
    const clock = createVirtualClock()
    const tables = createMemoryTables([queueTable])
    const queue = createEmbeddedQueue({ tables, clock }, { holdMs })
    return {
      queue,
      name: 'mail',
      now: clock.now,
      elapse: clock.advance,
      inject: async (body) => {
        const row = { channel: 'mail#normal', place: '?', body }
        await tables.commit([{ actions: [{ kind: 'put', table: queueTable.name, row }] }])
      },
      commit: async (actions) => (await tables.commit([{ actions }]))[0]?.kind === 'done',
      end: async () => {
        await queue.close()
        expect(clock.timers).toBe(0)
      },
    }
  },
  { clock: 'virtual', order: 'exact', stepMs: 1_000, patienceMs: 20_000 },
)
