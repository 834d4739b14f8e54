import type { Options } from '../config/options.ts'
import { createEmbeddedQueue, queueTable } from '../queues/embedded.ts'
import { systemHost } from '../tables/lmdb/host.ts'
import { openLmdb } from '../tables/lmdb.ts'
import { createPersistence } from '../write-behind/persist.ts'
import { type Profile, type ProfileDeps, purgeMax } from './profile.ts'

/** LMDB in a directory of this machine, for tables and queue alike: one durable step does both. */
export const openEmbedded = async (deps: ProfileDeps, options: Options): Promise<Profile> => {
  const schemas = [...deps.schemas, queueTable]
  const warn = (text: string) => deps.emit({ name: 'warning', text })
  const local = await openLmdb({ ...deps, host: systemHost(), warn }, { path: options.embedded.directory, schemas })
  const tables = createPersistence(deps, local, schemas, options.writeBehind)
  const queue = createEmbeddedQueue({ ...deps, tables: { ...tables, watch: local.watch, purge: local.purge } })
  return {
    tables,
    queue,
    watchedFloorMs: 0,
    purge: () => local.purge(Math.floor(deps.clock.now() / 1000), purgeMax),
    workerPrefix: `${local.holderNonce}/`,
    ...(local.previous?.died === 'proved' ? { deadWorkers: `${local.previous.nonce}/` } : {}),
    close: async () => {
      await queue.close()
      await tables.close()
    },
  }
}
