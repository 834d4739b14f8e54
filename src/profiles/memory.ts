import type { Options } from '../config/options.ts'
import { createMemoryQueue } from '../queues/memory.ts'
import { createMemoryTables } from '../tables/memory.ts'
import { createPersistence } from '../write-behind/persist.ts'
import { freshPrefix, type Profile, type ProfileDeps, purgeMax } from './profile.ts'

/** Everything in memory, gone with the process: for tests, demos and the simulator. */
export const openMemory = async (deps: ProfileDeps, options: Options): Promise<Profile> => {
  const local = createMemoryTables(deps.schemas)
  const tables = createPersistence(deps, local, deps.schemas, options.writeBehind)
  const queue = createMemoryQueue(deps)
  return {
    tables,
    queue,
    watchedFloorMs: 0,
    purge: () => local.purge(Math.floor(deps.clock.now() / 1000), purgeMax),
    workerPrefix: freshPrefix(deps.random),
    close: async () => {
      await queue.close()
      await tables.close()
    },
  }
}
