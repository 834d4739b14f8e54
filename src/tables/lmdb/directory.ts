import type { Stats } from 'node:fs'
import { access, constants, mkdir, open, rm, stat, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { DirectoryUnusable } from '../directory-faults.ts'
import { checkHeader, damaged, type HeaderVerdict, spareBytes } from './header.ts'
import type { HostFacts } from './host.ts'

const markerFile = (path: string): string => join(path, 'directory.txt')
const markerText = 'This is a Millrace data directory. Its files are not for editing; copy it with `millrace backup`.\n'

/** Makes the directory if it is not there and refuses one that we could not work with (K07). */
export const prepareDirectory = async (path: string, host: HostFacts): Promise<void> => {
  const found = (await look(path)) ?? (await create(path))
  if (!found.isDirectory()) throw unusable(path, 'it is not a directory', 'choose another path')
  if (host.uid !== undefined && found.uid !== host.uid)
    throw unusable(
      path,
      `it belongs to user ${found.uid}, not to ${host.uid}`,
      'change its owner or choose another path',
    )
  try {
    await access(path, constants.R_OK | constants.W_OK | constants.X_OK)
  } catch (cause) {
    throw unusable(path, 'it cannot be written', 'change its permissions or choose another path', cause)
  }
  const name = networkFileSystems.get(await host.fileSystem(path))
  if (name)
    throw unusable(path, `it is on ${name}, where two machines could damage it`, 'choose a path on a local disk')
}

/** The data file before it is opened. `absent` only if there never was one. */
export const checkDataFile = async (path: string): Promise<HeaderVerdict> => {
  const verdict = await checkHeader(path)
  const begun = verdict === 'absent' || verdict === 'empty'
  // Without the marker an empty file is a start that was cut off; with it, the data of a finished one is gone.
  if (begun && (await look(markerFile(path)))) throw damaged(path, `the data file is ${verdict}`)
  return begun ? 'absent' : verdict
}

/** Says that the directory is complete from here on. Names are as durable as data only if directories are flushed too. */
export const markDirectory = async (path: string): Promise<void> => {
  if (await look(markerFile(path))) return
  await writeFile(markerFile(path), markerText, { mode: 0o600, flush: true })
  await flush(path)
  await flush(dirname(path))
}

/** What opening and closing write at most. */
const probeBytes = 512 * 1024

/** Whether a little more data finds no room. LMDB calls a write that was cut short by a full disk an I/O error. */
export const isDiskFull = async (path: string): Promise<boolean> => {
  const probe = join(path, 'probe.tmp')
  try {
    await writeFile(probe, Buffer.alloc(probeBytes), { mode: 0o600 })
    return false
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code
    return code === 'ENOSPC' || code === 'EDQUOT'
  } finally {
    await rm(probe, { force: true })
  }
}

/** Opening writes a little, and LMDB must never meet a full disk (see room.ts). */
export const assertRoom = async (path: string): Promise<void> => {
  if ((await spareBytes(path)) >= probeBytes) return
  if (await isDiskFull(path)) throw unusable(path, 'its disk is full', 'free some space')
}

export const createDirectory = (path: string): Promise<unknown> => create(path)

const create = async (path: string): Promise<Stats> => {
  try {
    await mkdir(path, { mode: 0o700 })
    return await stat(path)
  } catch (cause) {
    const code = (cause as NodeJS.ErrnoException).code
    throw code === 'ENOENT'
      ? unusable(path, 'its parent directory does not exist', 'create the parent or choose another path', cause)
      : unusable(path, `it cannot be created (${code})`, 'check the parent or choose another path', cause)
  }
}

const look = async (path: string): Promise<Stats | undefined> => {
  try {
    return await stat(path)
  } catch (cause) {
    const code = (cause as NodeJS.ErrnoException).code
    if (code === 'ENOENT') return undefined
    throw unusable(path, `it cannot be looked at (${code})`, 'check the path and its permissions', cause)
  }
}

const flush = async (path: string): Promise<void> => {
  const handle = await open(path, 'r')
  try {
    await handle.sync()
  } catch {
    // Some file systems cannot flush a directory; they do not need it either.
  } finally {
    await handle.close()
  }
}

/** By the magic numbers that statfs gives: a memory map shared by two machines is not one map. */
const networkFileSystems: ReadonlyMap<number, string> = new Map([
  [0x6969, 'NFS'],
  [0x517b, 'SMB'],
  [0xff534d42, 'CIFS'],
  [0xfe534d42, 'SMB'],
  [0x5346414f, 'AFS'],
  [0x00c36400, 'Ceph'],
])

export const unusable = (path: string, why: string, advice: string, cause?: unknown): DirectoryUnusable =>
  new DirectoryUnusable(`${path} cannot be used: ${why}; ${advice}`, path, cause)
