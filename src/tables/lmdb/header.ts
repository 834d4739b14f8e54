// The first pages of a data file, read before it is mapped: a map over a file that was cut short ends the process as soon
// as a missing page is touched, and no error handling can catch that.

import { type FileHandle, open } from 'node:fs/promises'
import { join } from 'node:path'
import { DirectoryDamaged } from '../directory-faults.ts'

export const dataFile = (path: string): string => join(path, 'data.mdb')

/** `doubtful`: shorter than its highest page, which may be right (the last pages are free) or not. */
export type HeaderVerdict = 'absent' | 'empty' | 'sound' | 'doubtful'

/** Looks at the meta pages and the roots they name. Throws DirectoryDamaged for what cannot be opened. */
export const checkHeader = async (path: string): Promise<HeaderVerdict> => {
  let file: FileHandle
  try {
    file = await open(dataFile(path), 'r')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return 'absent'
    throw error
  }
  try {
    return await examine(path, file)
  } finally {
    await file.close()
  }
}

/** Offsets in a page and in the meta record that follows its header. */
const header = { bytes: 24, number: 0, flags: 18 }
const meta = { magic: 24, version: 28, pageBytes: 48, freeRoot: 88, mainRoot: 136, lastPage: 144, transaction: 152 }
const metaBytes = 160
const magic = 0xbeefc0de
const isMeta = 0x08
const isTree = 0x03
const noPage = 0xffffffffffffffffn

interface Meta {
  readonly pageBytes: number
  readonly roots: readonly bigint[]
  readonly lastPage: bigint
  readonly transaction: bigint
}

/** How much of a sound data file is not in use yet; 0 if there is none. */
export const spareBytes = async (path: string): Promise<number> => {
  if ((await checkHeader(path)) !== 'sound') return 0
  const file = await open(dataFile(path), 'r')
  try {
    const { pageBytes, lastPage } = await readNewest(path, file)
    return (await file.stat()).size - Number(lastPage + 1n) * pageBytes
  } finally {
    await file.close()
  }
}

const readNewest = async (path: string, file: FileHandle): Promise<Meta> => {
  const first = readMeta(path, await readAt(path, file, 0n))
  const second = readMeta(path, await readAt(path, file, BigInt(first.pageBytes)))
  return second.transaction > first.transaction ? second : first
}

const examine = async (path: string, file: FileHandle): Promise<HeaderVerdict> => {
  const { size } = await file.stat()
  if (size === 0) return 'empty'
  const newest = await readNewest(path, file)
  for (const root of newest.roots) {
    if (root === noPage) continue
    const page = await readAt(path, file, root * BigInt(newest.pageBytes))
    const sound = page.readBigUInt64LE(header.number) === root && (page.readUInt16LE(header.flags) & isTree) !== 0
    if (!sound) throw damaged(path, `page ${root} is not what the header says`)
  }
  return BigInt(size) < (newest.lastPage + 1n) * BigInt(newest.pageBytes) ? 'doubtful' : 'sound'
}

const readAt = async (path: string, file: FileHandle, position: bigint): Promise<Buffer> => {
  const page = Buffer.alloc(metaBytes)
  const { bytesRead } = await file.read(page, 0, metaBytes, Number(position))
  if (bytesRead < metaBytes) throw damaged(path, `the data file ends before byte ${position + BigInt(metaBytes)}`)
  return page
}

const readMeta = (path: string, page: Buffer): Meta => {
  const pageBytes = page.readUInt32LE(meta.pageBytes)
  const plausible =
    (page.readUInt16LE(header.flags) & isMeta) !== 0 &&
    page.readUInt32LE(meta.magic) === magic &&
    pageBytes >= 512 &&
    pageBytes <= 65_536
  if (!plausible) throw damaged(path, 'the header of the data file is not one')
  return {
    pageBytes,
    roots: [page.readBigUInt64LE(meta.freeRoot), page.readBigUInt64LE(meta.mainRoot)],
    lastPage: page.readBigUInt64LE(meta.lastPage),
    transaction: page.readBigUInt64LE(meta.transaction),
  }
}

export const damaged = (path: string, why: string, cause?: unknown): DirectoryDamaged =>
  new DirectoryDamaged(
    `${path}: ${why}; check the disk, keep a copy, and restore the directory from a backup`,
    path,
    cause,
  )
