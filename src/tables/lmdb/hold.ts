import { assert } from '../../kernel/assert.ts'
import type { Clock } from '../../kernel/clock.ts'
import type { Random } from '../../kernel/random.ts'
import { DirectoryHeld } from '../directory-faults.ts'
import type { TableSchema } from '../port.ts'
import { backupEnvironment } from './backup.ts'
import { assertRoom, checkDataFile, markDirectory, prepareDirectory, unusable } from './directory.ts'
import { doctor } from './doctor.ts'
import {
  type Engine,
  type Environment,
  isComplete,
  loadEngine,
  openEnvironment,
  openTables,
  type Table,
} from './environment.ts'
import { checkFormat, type Migration, readFormat, writeFormat } from './format.ts'
import { damaged } from './header.ts'
import {
  awaitFree,
  createHolderRecord,
  type HolderRecord,
  type PreviousHolder,
  readHeartbeat,
  readHolder,
  type Sighting,
  takeHolder,
} from './holder.ts'
import type { HostFacts } from './host.ts'
import { damageCodes } from './read.ts'

/** A directory that is ours until we let go of it. */
export interface HeldDirectory {
  readonly engine: Engine
  readonly environment: Environment
  readonly tables: readonly Table[]
  readonly nonce: string
  readonly previous: PreviousHolder | undefined
}

export interface HoldDeps {
  readonly clock: Clock
  readonly random: Random
  readonly host: HostFacts
  readonly engine?: () => Promise<Engine>
  readonly migrations?: ReadonlyMap<number, Migration>
}

export interface HoldOptions {
  readonly path: string
  readonly schemas: readonly TableSchema[]
  readonly mapBytes: number
}

const triesMax = 5

/** Checks, waits if it must, and takes the directory. Changes nothing in one that it refuses. */
export const holdDirectory = async (deps: HoldDeps, options: HoldOptions): Promise<HeldDirectory> => {
  const engine = await loadEngine(deps.engine)
  const own = createHolderRecord(deps.host, deps.random)
  let rival: HolderRecord | undefined
  for (let tries = 0; tries < triesMax; tries++) {
    await prepareDirectory(options.path, deps.host)
    const lookAgain = () => look(engine, options, deps.migrations)
    const found = await lookAgain()
    const free = await awaitFree({ ...deps, look: async () => (await lookAgain()).sighting }, options.path)
    await assertRoom(options.path)
    const environment = opening(options.path, () =>
      openEnvironment(engine, options.path, { ...options, readOnly: false }),
    )
    if (opening(options.path, () => takeHolder(environment, free.holder, own))) {
      const tables = await settle(engine, environment, options, found)
      return { engine, environment, tables, nonce: own.nonce, previous: free.previous }
    }
    // Somebody else took it between our look and our transaction: look at that one.
    rival = readHolder(environment)
    await environment.root.close()
  }
  assert(rival, 'a directory was lost to nobody')
  throw new DirectoryHeld(options.path, rival)
}

interface Found {
  readonly sighting: Sighting
  readonly version: number
  readonly migrations: readonly Migration[]
}

const nothing: Found = { sighting: { holder: undefined, heartbeat: '' }, version: 0, migrations: [] }

/** Without a write transaction, which a stopped process could make us wait for. */
const look = async (
  engine: Engine,
  { path, schemas, mapBytes }: HoldOptions,
  migrations?: ReadonlyMap<number, Migration>,
): Promise<Found> => {
  const state = await checkDataFile(path)
  if (state === 'absent') return nothing
  if (state === 'doubtful') {
    const { sound, problems } = await doctor(path)
    if (!sound) throw damaged(path, problems[0] ?? 'the data file is cut short')
  }
  const environment = opening(path, () => openEnvironment(engine, path, { mapBytes, readOnly: true }))
  try {
    if (!isComplete(environment)) return nothing
    const format = readFormat(environment)
    return {
      sighting: { holder: readHolder(environment), heartbeat: readHeartbeat(environment) },
      version: format?.version ?? 0,
      migrations: checkFormat(path, format, schemas, migrations),
    }
  } finally {
    await environment.root.close()
  }
}

/** The holder's first acts: an older format is brought up to date, and the tables are there. */
const settle = async (
  engine: Engine,
  environment: Environment,
  { path, schemas }: HoldOptions,
  { version, migrations }: Found,
): Promise<readonly Table[]> => {
  if (migrations.length > 0) await backupEnvironment({ engine, environment }, `${path}.format-${version}`)
  const tables = opening(path, () => {
    environment.root.transactionSync(() => {
      for (const migrate of migrations) migrate(environment)
      writeFormat(environment, schemas)
    })
    return openTables(environment, schemas)
  })
  await markDirectory(path)
  return tables
}

/** Errors of the library on the way to an open directory become faults here. */
const opening = <T>(path: string, open: () => T): T => {
  try {
    return open()
  } catch (error) {
    const code = (error as { code?: unknown }).code
    if (typeof code !== 'number') throw error
    if (damageCodes.has(code)) throw damaged(path, 'its data file cannot be read', error)
    throw unusable(path, (error as Error).message, 'check the disk and its permissions', error)
  }
}
