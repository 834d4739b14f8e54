// The token that every call needs, in a file that only its owner can read (design, section 10).

import { constants } from 'node:fs'
import { link, open, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Random } from '../kernel/random.ts'
import { TokenFileUnusable } from './faults.ts'

export const tokenFileOf = (dataDir: string): string => join(dataDir, 'token')

const tokenBytes = 32
const fileBytesMax = 4_096

/** The token of a file, or undefined if there is no such file. */
export const readToken = async (path: string, uid: number | undefined): Promise<string | undefined> => {
  if (path.includes('\0')) throw new TokenFileUnusable('the path of a token file has no NUL in it')
  const file = await opened(path)
  if (!file) return undefined
  try {
    const found = await file.stat()
    if (!found.isFile()) throw refused(path, 'is not a file')
    if (uid !== undefined && found.uid !== uid) throw refused(path, 'belongs to somebody else')
    if (uid !== undefined && (found.mode & 0o077) !== 0) throw refused(path, 'can be read by others')
    if (found.size > fileBytesMax) throw refused(path, 'is too large for a token')
    const token = (await file.readFile('utf8')).trim()
    if (!/^[\x21-\x7e]+$/.test(token)) throw refused(path, 'holds no token')
    return token
  } finally {
    await file.close()
  }
}

const opened = async (path: string) => {
  try {
    // A link could lead anywhere, also to a file whose content we would then send to a server (M08).
    return await open(path, constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0))
  } catch (cause) {
    const code = (cause as NodeJS.ErrnoException).code
    if (code === 'ENOENT') return undefined
    throw refused(path, code === 'ELOOP' ? 'is a link' : `cannot be read (${code})`, cause)
  }
}

/** The token of a data directory; made if there is none. Any number of processes may ask at once: they get the same one. */
export const ensureToken = async (
  deps: { readonly random: Random; readonly uid: number | undefined },
  path: string,
): Promise<string> => {
  const present = await readToken(path, deps.uid)
  if (present !== undefined) return present
  const token = Buffer.from(deps.random.bytes(tokenBytes)).toString('base64url')
  const draft = `${path}.${Buffer.from(deps.random.bytes(6)).toString('hex')}`
  try {
    const file = await open(draft, 'wx', 0o600)
    try {
      await file.writeFile(`${token}\n`)
      await file.sync()
    } finally {
      await file.close()
    }
    // A link appears whole or not at all, and never replaces what another process put there meanwhile.
    await link(draft, path)
    return token
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== 'EEXIST')
      throw refused(path, `cannot be made (${(cause as NodeJS.ErrnoException).code})`, cause)
    const theirs = await readToken(path, deps.uid)
    if (theirs === undefined) throw refused(path, 'appeared and went away', cause)
    return theirs
  } finally {
    await rm(draft, { force: true })
  }
}

const refused = (path: string, why: string, cause?: unknown): TokenFileUnusable =>
  new TokenFileUnusable(`the token file ${path} ${why}`, cause === undefined ? {} : { cause })
