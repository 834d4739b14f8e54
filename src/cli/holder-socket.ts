// The socket of whoever holds a data directory. It lies in the directory, so that finding the one is finding the other and the
// directory's mode (0700) guards it. Systems cut the path of a socket at about a hundred bytes; where the directory's own path
// is too long, the socket lies in a folder of the user's own (0700) below the temporary directory, named by a hash of the path.

import { createHash } from 'node:crypto'
import { join, resolve } from 'node:path'
import type { Host } from './context.ts'

/** What a socket's path may have on every platform that we know: 104 with its final zero on macOS and BSD, 108 on Linux. */
export const socketPathBytesMax = 103

export interface HolderSocket {
  readonly path: string
  /** A folder that whoever listens makes first, with mode 0700, and that both sides refuse if it is somebody else's. */
  readonly folder: string | undefined
}

export const holderSocket = (
  dataDir: string,
  { platform, temporary, uid }: Pick<Host, 'platform' | 'temporary' | 'uid'>,
): HolderSocket => {
  const directory = resolve(dataDir)
  const key = createHash('sha256').update(directory).digest('hex').slice(0, 32)
  // Windows has no files for sockets, but names of pipes.
  if (platform === 'win32') return { path: `\\\\.\\pipe\\millrace-${key}`, folder: undefined }
  const path = join(directory, 'millrace.sock')
  if (Buffer.byteLength(path) <= socketPathBytesMax) return { path, folder: undefined }
  const folder = join(temporary, `millrace-${uid ?? 0}`)
  const short = join(folder, key)
  // A long temporary directory is somebody's choice; the one that every system has is short enough.
  if (Buffer.byteLength(short) <= socketPathBytesMax) return { path: short, folder }
  const last = join('/tmp', `millrace-${uid ?? 0}`)
  return { path: join(last, key), folder: last }
}
