// A socket in a directory, for its owner alone from its first moment on. It is made where nobody else can look and moved into
// its place when its mode is right; moving it also replaces what a process that died has left there, in one step.

import { chmod, mkdtemp, rename, rm, stat } from 'node:fs/promises'
import { connect } from 'node:net'
import { dirname, join } from 'node:path'
import { AddressUnusable } from './faults.ts'
import type { Listener } from './listener.ts'

/** The operating systems have room for about a hundred bytes, and cut what is longer without a word. */
const pathBytesMax = 100

export const openUnixSocket = async (path: string, open: (path: string) => Promise<Listener>): Promise<Listener> => {
  const staging = join(dirname(path), '.sXXXXXX', 's')
  if (Math.max(Buffer.byteLength(path), Buffer.byteLength(staging)) > pathBytesMax) {
    throw new AddressUnusable(`the path of the socket is longer than ${pathBytesMax} bytes: ${path}`, {
      limit: pathBytesMax,
    })
  }
  if (await answers(path)) throw new AddressUnusable(`somebody listens on ${path} already`)
  // Its mode is 0700: a directory made by mkdtemp belongs to us alone.
  const folder = await makeFolder(path)
  try {
    const hidden = join(folder, 's')
    const listener = await open(hidden)
    try {
      await chmod(hidden, 0o600)
      const { ino } = await stat(hidden)
      await rename(hidden, path)
      return { ...listener, close: () => listener.close().finally(() => removeIfOurs(path, ino)) }
    } catch (cause) {
      listener.cut()
      await listener.close()
      throw new AddressUnusable(`cannot put a socket at ${path}`, { cause })
    }
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

const makeFolder = async (path: string): Promise<string> => {
  try {
    return await mkdtemp(join(dirname(path), '.s'))
  } catch (cause) {
    throw new AddressUnusable(`cannot make a socket in ${dirname(path)}`, { cause })
  }
}

/** Whether a living process listens there. */
const answers = (path: string): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(path)
    const done = (is: boolean) => {
      socket.destroy()
      resolve(is)
    }
    socket.once('connect', () => done(true)).once('error', () => done(false))
  })

/** Somebody may have put a socket of their own there since. */
const removeIfOurs = async (path: string, inode: number): Promise<void> => {
  const found = await stat(path).catch(() => undefined)
  if (found?.ino === inode) await rm(path, { force: true })
}
