// Provides machines/directory-contact.ts: opens the data directory, or connects to whoever holds it.

import { directoryContact } from '../../machines/directory-contact.ts'
import type { Clock } from '../kernel/clock.ts'
import { isFault } from '../kernel/fault.ts'
import { createRoot } from '../kernel/start.ts'
import type { LocalRuntime } from './context.ts'
import { isUnreachable } from './failure.ts'
import { HolderSilent } from './faults.ts'
import type { JobsClient } from './jobs-client.ts'

/** Where our jobs are: in this process, or in the one that holds the directory. */
export type Place =
  | { readonly kind: 'holding'; readonly client: LocalRuntime }
  | { readonly kind: 'visiting'; readonly client: JobsClient }

export interface DirectoryContact {
  /** Resolves when there is somebody to talk to. Throws HOLDER_SILENT, or what made the directory unusable. */
  seek(): Promise<Place>
  /** The holder that was found is gone: `seek` again. */
  lost(): void
  /** No more timers. */
  close(): void
}

const patienceMs = 5_000
const pauseMs = 100

export const createDirectoryContact = (deps: {
  readonly clock: Clock
  /** Throws DIRECTORY_HELD if another process has it. */
  readonly open: () => Promise<LocalRuntime>
  readonly connect: () => Promise<JobsClient>
}): DirectoryContact => {
  const actor = createRoot(directoryContact, { clock: deps.clock, input: { patienceMs, pauseMs } })
  let place: Place | undefined
  let silence: unknown
  let since = 0

  const open = async () => {
    try {
      place = { kind: 'holding', client: await deps.open() }
      actor.send({ type: 'opened' })
    } catch (error) {
      if (!isFault(error) || error.code !== 'DIRECTORY_HELD') throw error
      silence = error
      actor.send({ type: 'held' })
    }
  }
  const connect = async () => {
    try {
      place = { kind: 'visiting', client: await deps.connect() }
      actor.send({ type: 'answered' })
    } catch (error) {
      if (!isUnreachable(error)) throw error
      actor.send({ type: 'silent', waitedMs: deps.clock.monotonic() - since })
    }
  }
  /** Resolves at the next change of state: what was asked for has been done, or the pause is over. */
  const changed = () =>
    new Promise<void>((resolve) => {
      const before = actor.getSnapshot().value
      const subscription = actor.subscribe((snapshot) => {
        if (snapshot.value === before) return
        subscription.unsubscribe()
        resolve()
      })
    })

  return {
    seek: async () => {
      since = deps.clock.monotonic()
      place = undefined
      actor.start()
      for (;;) {
        const snapshot = actor.getSnapshot()
        if (snapshot.hasTag('opening')) await open()
        else if (snapshot.hasTag('connecting')) await connect()
        else if (snapshot.hasTag('settled')) {
          if (place !== undefined) return place
          throw new HolderSilent(
            `${silence instanceof Error ? silence.message : 'the directory is in use'}, and nobody answers`,
            {
              cause: silence,
            },
          )
        } else await changed()
      }
    },
    lost: () => actor.send({ type: 'vanished' }),
    close: () => {
      if (actor.getSnapshot().status === 'active') actor.send({ type: 'leave' })
      actor.stop()
    },
  }
}
