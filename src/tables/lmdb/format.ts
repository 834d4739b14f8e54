import { isDeepStrictEqual } from 'node:util'
import { FormatUnknown } from '../directory-faults.ts'
import type { TableSchema } from '../port.ts'
import type { Environment } from './environment.ts'

/** Raised with every change to what lies in a directory: keys, records, databases, the meaning of a table. */
export const formatVersion = 1

/** Brings a directory from a version to the next one. The holder has taken a backup beside the directory before. */
export type Migration = (environment: Environment) => void

/** By the version they start from. */
const migrations: ReadonlyMap<number, Migration> = new Map()

interface Format {
  readonly version: number
  readonly schemas: readonly TableSchema[]
}

const key = 'format'

export const readFormat = (environment: Environment): Format | undefined => {
  const bytes = environment.meta.getBinary(key)
  return bytes && (JSON.parse(bytes.toString()) as Format)
}

/** Refuses what this version cannot read (K08). Answers the migrations that are needed, in order. */
export const checkFormat = (
  path: string,
  stored: Format | undefined,
  schemas: readonly TableSchema[],
  known: ReadonlyMap<number, Migration> = migrations,
): readonly Migration[] => {
  if (!stored) return []
  if (stored.version > formatVersion)
    throw new FormatUnknown(
      `${path} has format ${stored.version}, this version knows ${formatVersion}; use the newer version that wrote it`,
      path,
    )
  const needed: Migration[] = []
  for (let version = stored.version; version < formatVersion; version++) {
    const migration = known.get(version)
    if (!migration)
      throw new FormatUnknown(
        `${path} has format ${stored.version}, and this version cannot bring it to ${formatVersion}; use the version that wrote it`,
        path,
      )
    needed.push(migration)
  }
  if (needed.length === 0) checkSchemas(path, stored.schemas, schemas)
  return needed
}

/** Tables may be added. One that changes its shape needs a migration and a new version. */
const checkSchemas = (path: string, stored: readonly TableSchema[], schemas: readonly TableSchema[]): void => {
  const byName = new Map(stored.map((schema) => [schema.name, schema]))
  for (const schema of schemas) {
    const before = byName.get(schema.name)
    if (before && !isDeepStrictEqual(before, JSON.parse(JSON.stringify(schema))))
      throw new FormatUnknown(`${path} holds table ${schema.name} with other keys or indexes`, path)
  }
}

/** Inside a transaction. Tables that this process does not open stay described. */
export const writeFormat = (environment: Environment, schemas: readonly TableSchema[]): void => {
  const named = new Map(
    [...(readFormat(environment)?.schemas ?? []), ...schemas].map((schema) => [schema.name, schema]),
  )
  const format: Format = { version: formatVersion, schemas: [...named.values()] }
  environment.meta.putSync(key, Buffer.from(JSON.stringify(format)))
}
