import { systemRandom } from '../../../src/kernel/random.ts'
import type { Environment } from '../../../src/tables/lmdb/environment.ts'
import { loadEngine, openEnvironment } from '../../../src/tables/lmdb/environment.ts'
import { createHolderRecord, type HolderRecord, readHolder, takeHolder } from '../../../src/tables/lmdb/holder.ts'
import { systemHost } from '../../../src/tables/lmdb/host.ts'

/** Does something to a directory behind the adapter's back. */
export const meddle = async <T>(path: string, act: (environment: Environment) => T): Promise<T> => {
  const environment = openEnvironment(await loadEngine(), path, { mapBytes: 1024 ** 2, readOnly: false })
  try {
    return act(environment)
  } finally {
    await environment.root.close()
  }
}

/** Makes somebody else the holder of a directory: this process, except for what the test says. */
export const plantHolder = async (path: string, over: Partial<HolderRecord>): Promise<HolderRecord> => {
  const record = { ...createHolderRecord(systemHost(), systemRandom), ...over }
  await meddle(path, (environment) => takeHolder(environment, readHolder(environment), record))
  return record
}
