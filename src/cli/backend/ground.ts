// What everything behind the commands stands on: the data directory, its token, its socket, the environment.

import { mkdir } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import type { Options } from '../../config/options.ts'
import type { Clock } from '../../kernel/clock.ts'
import type { Random } from '../../kernel/random.ts'
import type { Host } from '../context.ts'
import { holderSocket } from '../holder-socket.ts'
import { ensureToken, tokenFileOf } from '../token-file.ts'

export interface BackendDeps {
  readonly clock: Clock
  readonly random: Random
  readonly host: Host
  /** Ends the process: the storage can no longer be trusted. */
  readonly fatal: (error: unknown) => void
}

/** The environment as programs may get to see it. */
export const environmentOf = ({ env }: Host): Readonly<Record<string, string>> =>
  Object.fromEntries(Object.entries(env).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])))

/** The store makes its directory, but not what lies above it. */
export const prepareDirectory = async ({ profile, embedded }: Options): Promise<void> => {
  if (profile === 'embedded') await mkdir(dirname(resolve(embedded.directory)), { recursive: true })
}

/** The token of the data directory, made if there is none. */
export const localToken = async ({ random, host }: BackendDeps, options: Options): Promise<string> => {
  const { directory } = options.embedded
  await mkdir(directory, { recursive: true, mode: 0o700 })
  return ensureToken({ random, uid: host.uid }, tokenFileOf(directory))
}

/** Where whoever holds the data directory listens; nowhere if there is none to hold. */
export const socketOf = async ({ host }: BackendDeps, options: Options): Promise<readonly { path: string }[]> => {
  if (options.profile !== 'embedded') return []
  const { path, folder } = holderSocket(options.embedded.directory, host)
  if (folder !== undefined) await mkdir(folder, { recursive: true, mode: 0o700 })
  return [{ path }]
}
