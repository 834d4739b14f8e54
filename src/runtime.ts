import { loadOptions } from './config/load.ts'
import type { Options } from './config/options.ts'
import { jobsTable } from './jobs/keys.ts'
import { createSigner, type SigningKey } from './jobs/signer.ts'
import { storedSigningKey } from './jobs/signing-keys.ts'
import { createStore, type JobStore } from './jobs/store.ts'
import { createSweeper } from './jobs/sweeper.ts'
import { createTokens, type Tokens } from './jobs/tokens.ts'
import { type Clock, systemClock } from './kernel/clock.ts'
import { createIds } from './kernel/ids.ts'
import { type Random, systemRandom } from './kernel/random.ts'
import { eventsTable } from './log/keys.ts'
import type { Profile, ProfileDeps } from './profiles/profile.ts'
import { type Emit, silent } from './telemetry/events.ts'

export interface RuntimeDeps {
  readonly clock?: Clock
  readonly random?: Random
  readonly emit?: Emit
  /** Called when the storage can no longer be trusted; the owner of the process ends it. */
  readonly fatal?: (error: unknown) => void
}

export interface Runtime {
  readonly store: JobStore
  readonly tokens: Tokens
  /** Begins the id of every worker of this process, so that its death can be told from it. */
  readonly workerPrefix: string
  /** Ends what is under way, stores what was given, lets go of the storage. Calling it twice is fine. */
  stop(): Promise<void>
}

export const schemas = [jobsTable, eventsTable]

/** The composition root: options and a profile become a running system. */
export const createRuntime = async (given: unknown, deps: RuntimeDeps = {}): Promise<Runtime> => {
  const options = loadOptions(given)
  const { clock = systemClock, random = systemRandom, emit = silent, fatal = rethrow } = deps
  const profile = await openProfile({ clock, random, emit, fatal, schemas }, options)
  try {
    return await assemble({ clock, random, emit }, profile, options)
  } catch (error) {
    // Whoever cannot start must not go on holding the data directory.
    await profile.close()
    throw error
  }
}

const assemble = async (
  { clock, random, emit }: Required<Pick<RuntimeDeps, 'clock' | 'random' | 'emit'>>,
  profile: Profile,
  options: Options,
): Promise<Runtime> => {
  const signer = createSigner(await signingKeys(profile, random, options))
  const ids = createIds(clock, random)
  const { tables, queue } = profile
  const store = createStore({ tables, queue, clock, random, ids, options: options.jobs, emit, signer })
  if (profile.deadWorkers !== undefined) await store.sweep.expireWorkers(profile.deadWorkers)
  const sweep = {
    ...store.sweep,
    run: async () => {
      const swept = await store.sweep.run()
      await profile.purge?.()
      return swept
    },
  }
  const sweeper = createSweeper({ clock, random, emit, sweep }, options.jobs)
  let stopping: Promise<void> | undefined
  return {
    store,
    tokens: createTokens({ clock, signer }),
    workerPrefix: profile.workerPrefix,
    stop: () => {
      stopping ??= sweeper.stop().then(() => profile.close())
      return stopping
    },
  }
}

/** Adapters are loaded only when they are chosen: nobody on a laptop waits for a cloud library. */
const openProfile = async (deps: ProfileDeps, options: Options): Promise<Profile> => {
  switch (options.profile) {
    case 'embedded':
      return (await import('./profiles/embedded.ts')).openEmbedded(deps, options)
    case 'aws':
      return (await import('./profiles/aws.ts')).openAws(deps, options)
    case 'memory':
      return (await import('./profiles/memory.ts')).openMemory(deps, options)
  }
}

const signingKeys = async (profile: Profile, random: Random, options: Options): Promise<readonly SigningKey[]> => {
  const configured = options.signing.keys.map(({ id, secret }) => ({ id, secret: Buffer.from(secret, 'base64') }))
  return configured.length > 0 ? configured : [await storedSigningKey(profile.tables, random)]
}

const rethrow = (error: unknown): void => {
  queueMicrotask(() => {
    throw error
  })
}
