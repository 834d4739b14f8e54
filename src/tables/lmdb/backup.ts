import { open } from 'node:fs/promises'
import { createDirectory, markDirectory } from './directory.ts'
import { type Engine, type Environment, openEnvironment } from './environment.ts'
import { dataFile } from './header.ts'
import { disown } from './holder.ts'

/** Copies one snapshot while writing goes on. The copy is a directory of its own, flushed and held by nobody. */
export const backupEnvironment = async (
  { engine, environment }: { readonly engine: Engine; readonly environment: Environment },
  path: string,
): Promise<void> => {
  await createDirectory(path)
  await environment.root.backup(path, false)
  const file = await open(dataFile(path), 'r+')
  try {
    await file.chmod(0o600)
    await file.sync()
    const { size } = await file.stat()
    const copy = openEnvironment(engine, path, { mapBytes: size, readOnly: false })
    disown(copy)
    await copy.root.close()
  } finally {
    await file.close()
  }
  await markDirectory(path)
}
