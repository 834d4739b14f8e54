import { createEmbeddedQueue, queueTable } from '../../src/queues/embedded.ts'
import { createVirtualClock } from '../../src/sim/virtual-clock.ts'
import { openLmdb } from '../../src/tables/lmdb.ts'
import { queueContract } from '../contract/queue.ts'
import { lmdbDeps, tempFolder } from '../tables/support/directory.ts'

// The disk takes real time, but everything the contract waits for is a commit; only the queue's own time is virtual.
queueContract(
  'embedded, on disk',
  async ({ holdMs }) => {
    const { path, remove } = tempFolder()
    const clock = createVirtualClock()
    const tables = await openLmdb(lmdbDeps(), { path, schemas: [queueTable] })
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
        await tables.close()
        remove()
      },
    }
  },
  { clock: 'virtual', order: 'exact', stepMs: 1_000, patienceMs: 20_000 },
)
