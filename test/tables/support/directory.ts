import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { systemClock } from '../../../src/kernel/clock.ts'
import { systemRandom } from '../../../src/kernel/random.ts'
import { systemHost } from '../../../src/tables/lmdb/host.ts'
import { type LmdbDeps, type LmdbTables, openLmdb } from '../../../src/tables/lmdb.ts'
import { contractSchemas } from '../../contract/tables.ts'

/** A folder of the test's own, and the way to get rid of it. */
export const tempFolder = () => {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-lmdb-'))
  return { path: join(folder, 'data'), folder, remove: () => rmSync(folder, { recursive: true, force: true }) }
}

/** The real machine, where a fatal error fails the test. */
export const lmdbDeps = (over: Partial<LmdbDeps> = {}): LmdbDeps => ({
  clock: systemClock,
  random: systemRandom,
  host: systemHost(),
  fatal: (error) => {
    throw error
  },
  warn: () => {},
  ...over,
})

export const openAt = (path: string, over: Partial<LmdbDeps> = {}): Promise<LmdbTables> =>
  openLmdb(lmdbDeps(over), { path, schemas: contractSchemas })
