// How a command comes to its jobs: the server that was named, whoever holds the data directory, or the storage itself.

import type { CliContext, LocalRuntime, RuntimeMode, Target } from './context.ts'
import { createDirectoryContact, type DirectoryContact } from './directory-contact.ts'
import { holderSocket } from './holder-socket.ts'
import type { JobsClient } from './jobs-client.ts'
import { isWholeId } from './parse/words.ts'
import type { Settings } from './settings.ts'
import { tokenFileOf } from './token-file.ts'

export interface Reached {
  readonly client: JobsClient
  /** Set if the jobs are in this process. */
  readonly runtime: LocalRuntime | undefined
  /** Nobody else can run jobs there as long as we are here. */
  readonly isAlone: boolean
}

export interface Reach {
  /** Throws if nobody can be reached. Call it again after `lost`. */
  find(): Promise<Reached>
  /** Whoever was found no longer answers. False if there is no other way. */
  lost(): boolean
  close(): Promise<void>
}

export const createReach = (context: CliContext, settings: Settings, mode: RuntimeMode): Reach => {
  let reached: Reached | undefined
  let contact: DirectoryContact | undefined
  const open = () => context.backend.open(settings.options, mode)
  const keep = (found: Reached): Reached => {
    reached = found
    return found
  }
  const find = async (): Promise<Reached> => {
    if (settings.server !== undefined) {
      const client = await context.backend.connect(await targetOf(context, settings, settings.server))
      return keep({ client, runtime: undefined, isAlone: false })
    }
    if (settings.options.profile !== 'embedded') {
      const runtime = await open()
      return keep({ client: runtime, runtime, isAlone: settings.options.profile === 'memory' })
    }
    const { path } = holderSocket(settings.dataDir, context.host)
    const connect = async () => context.backend.connect(await targetOf(context, settings, `unix:${path}`))
    contact ??= createDirectoryContact({ clock: context.clock, open, connect })
    const place = await contact.seek()
    return place.kind === 'holding'
      ? keep({ client: place.client, runtime: place.client, isAlone: true })
      : keep({ client: place.client, runtime: undefined, isAlone: false })
  }
  return {
    find,
    lost: () => {
      const canSeekAgain = contact !== undefined && reached !== undefined && reached.runtime === undefined
      if (canSeekAgain) contact?.lost()
      return canSeekAgain
    },
    close: async () => {
      contact?.close()
      await reached?.client.close()
    },
  }
}

/** The token from where it was named, else from the data directory. */
export const targetOf = async (context: CliContext, settings: Settings, address: string): Promise<Target> => {
  const inHand = context.host.env['MILLRACE_TOKEN']
  const token =
    settings.tokenFile === undefined && inHand
      ? inHand
      : await context.files.readToken(settings.tokenFile ?? tokenFileOf(settings.dataDir))
  return { address, token }
}

/** Does something with whoever can be reached, and lets go of it afterwards. */
export const withJobs = async <T>(
  context: CliContext,
  settings: Settings,
  work: (reached: Reached) => Promise<T>,
): Promise<T> => {
  const reach = createReach(context, settings, 'visit')
  try {
    return await work(await reach.find())
  } finally {
    await reach.close()
  }
}

export const wholeId = (client: JobsClient, id: string): Promise<string> =>
  isWholeId(id) ? Promise.resolve(id) : client.resolveId(id)
