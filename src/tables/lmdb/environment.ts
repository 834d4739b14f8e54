import { arch, platform } from 'node:os'
import type { Database, GetOptions, RootDatabase } from 'lmdb'
import { createCatalogue } from '../condition.ts'
import { EngineMissing } from '../directory-faults.ts'
import type { Change, TableSchema } from '../port.ts'
import type { Cell } from './cell.ts'
import { type Place, writeBytes, writePlace } from './keys.ts'
import { createRecordPlan, type RecordPlan } from './record.ts'

/** What we use of the native module. */
export type Engine = Pick<typeof import('lmdb'), 'open'>

/** Byte strings (see keys.ts) to bytes. The library's own types leave out that reads take a snapshot. */
export interface Bytes extends Database<Buffer, string> {
  put(key: string | Place, value: Buffer): Promise<boolean>
  remove(key: string | Place): Promise<boolean>
  getBinary(key: string, options?: GetOptions): Buffer | undefined
  /** The bytes are overwritten by the next read. */
  getBinaryFast(key: string, options?: GetOptions): Buffer | undefined
}

export interface Table {
  readonly number: number
  readonly schema: TableSchema
  readonly rows: Bytes
  readonly indexes: readonly TableIndex[]
  /** The most puts and removals that a change of one row comes to. */
  readonly operationsMax: number
  /** Rows by the second after which they are rubbish. */
  readonly expiry: { readonly attribute: string; readonly entries: Bytes } | undefined
  /** Rows that will be written again soon, and rows that are being written. */
  readonly cells: Map<string, Cell>
  readonly plan: RecordPlan
  readonly listeners: Set<(changes: readonly Change[]) => void>
}

export interface TableIndex {
  readonly name: string
  readonly index: TableSchema['indexes'][string]
  readonly entries: Bytes
}

export interface Environment {
  readonly root: RootDatabase<Buffer, string>
  readonly meta: Bytes
  /** One record whose LMDB version is the holder's nonce, so that a transaction can stand or fall with it. */
  readonly holder: Bytes
}

/** Lazily, so that what never opens a directory never loads native code. */
export const loadEngine = async (load: () => Promise<Engine> = () => import('lmdb')): Promise<Engine> => {
  try {
    return await load()
  } catch (cause) {
    throw new EngineMissing(
      `the embedded store has no native module for ${platform()}-${arch()}; install again without leaving ` +
        'out optional dependencies, or use a profile with a storage service',
      { cause },
    )
  }
}

const keyEncoder = {
  writeKey: (key: string | Place, target: Buffer, at: number): number =>
    typeof key === 'string' ? writeBytes(key, target, at) : writePlace(key, target, at),
  readKey: (source: Buffer, start: number, end: number): string => source.toString('latin1', start, end),
}

const databaseOptions = { encoding: 'binary', cache: false, compression: false, dupSort: false } as const
const withKeys = <Options extends object>(options: Options) => ({ ...databaseOptions, keyEncoder, ...options })

export interface EnvironmentOptions {
  readonly mapBytes: number
  readonly readOnly: boolean
}

const databasesMax = 256

/** Commits are flushed before anybody sees them: what can be read is durable. */
export const openEnvironment = (engine: Engine, path: string, options: EnvironmentOptions): Environment => {
  const settings = {
    path,
    noSubdir: false,
    maxDbs: databasesMax,
    mapSize: options.mapBytes,
    remapChunks: false,
    overlappingSync: false,
    noSync: false,
    noMetaSync: false,
    useWritemap: false,
    readOnly: options.readOnly,
    permissionsMode: 0o600,
    // With turns batched by the library it makes promises of its own, which nobody could handle when the disk is full.
    eventTurnBatching: false,
    txnStartThreshold: 1,
    // Its thread would start before we are done and then wait for us again and again: measured, that is the slower way.
    batchStartThreshold: 1_000_000,
  }
  const root = engine.open<Buffer, string>(withKeys(settings))
  try {
    return {
      root,
      meta: root.openDB('meta', withKeys({})),
      holder: root.openDB('holder', withKeys({ useVersions: true })),
    }
  } catch (error) {
    void root.close()
    throw error
  }
}

/** False for a file that was made and never filled: a reader finds no databases in it. */
export const isComplete = ({ meta, holder }: Partial<Environment>): boolean =>
  meta !== undefined && holder !== undefined

/** The highest page of the data file that is in use. */
export const lastPage = ({ root }: Environment): number =>
  (root.getStats() as { readonly lastPageNumber: number }).lastPageNumber

/** One database for the rows of a table, one for each index and one for the order of expiry. */
export const openTables = (environment: Environment, schemas: readonly TableSchema[]): readonly Table[] => {
  createCatalogue(schemas)
  const open = (name: string): Bytes => environment.root.openDB(name, withKeys({}))
  return schemas.map((schema, number) => ({
    number,
    schema,
    rows: open(`rows/${schema.name}`),
    indexes: Object.entries(schema.indexes).map(([name, index]) => ({
      name,
      index,
      entries: open(`index/${schema.name}/${name}`),
    })),
    operationsMax: 1 + 2 * Object.keys(schema.indexes).length + (schema.ttl === undefined ? 0 : 2),
    expiry: schema.ttl === undefined ? undefined : { attribute: schema.ttl, entries: open(`expiry/${schema.name}`) },
    cells: new Map(),
    plan: createRecordPlan(),
    listeners: new Set(),
  }))
}
