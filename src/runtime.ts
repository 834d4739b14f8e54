import { unpackItems, wantedItems } from './client/unpack.ts'
import type { FollowedEvent, FollowedItem } from './client/watch.ts'
import { loadOptions } from './config/load.ts'
import type { Options } from './config/options.ts'
import { JobUnknown } from './jobs/faults.ts'
import type { Claim, Job } from './jobs/job.ts'
import { jobsTable } from './jobs/keys.ts'
import { createNotices } from './jobs/notices.ts'
import { notingStore } from './jobs/noting-store.ts'
import { createSigner, type SigningKey } from './jobs/signer.ts'
import { storedSigningKey } from './jobs/signing-keys.ts'
import { createStore, type JobStore } from './jobs/store.ts'
import { createSweeper } from './jobs/sweeper.ts'
import { tellingStore } from './jobs/telling-store.ts'
import { createTokens, type Tokens } from './jobs/tokens.ts'
import { type Clock, systemClock } from './kernel/clock.ts'
import { isFault } from './kernel/fault.ts'
import { createIds } from './kernel/ids.ts'
import { type Random, systemRandom } from './kernel/random.ts'
import { createAttemptLog } from './log/append.ts'
import { createFollower } from './log/follow.ts'
import type { FollowRequest } from './log/follower.ts'
import { eventsTable, logId } from './log/keys.ts'
import { createTails } from './log/tail.ts'
import { bareEnd, encodeEvents, endAfter } from './log/whole-event.ts'
import { freshPrefix, type Profile, type ProfileDeps } from './profiles/profile.ts'
import type { Address, Server } from './rpc/server.ts'
import { type Emit, silent } from './telemetry/events.ts'
import type { Exec } from './worker/exec.ts'
import { createHandlers, type Handler } from './worker/handlers.ts'
import { createLocalService } from './worker/local-service.ts'
import { createOwnJobs } from './worker/own-jobs.ts'
import type { WorkerService } from './worker/service.ts'
import { createSystemExec } from './worker/system-exec.ts'
import { createWorker, type Worker } from './worker/worker.ts'

export interface RuntimeDeps {
  readonly clock?: Clock
  readonly random?: Random
  readonly emit?: Emit
  /** Called when the storage can no longer be trusted; the owner of the process ends it. */
  readonly fatal?: (error: unknown) => void
  /** Functions of this process that jobs name. */
  readonly handlers?: Readonly<Record<string, Handler>>
  /** The environment that programs may see part of; nothing of it if left out. `worker.environment` says which part. */
  readonly environment?: Readonly<Record<string, string>>
  readonly exec?: Exec
  /** Which jobs run in this process: all that come, only those that were enqueued through it, or none. */
  readonly work?: 'all' | 'own' | 'none'
}

export interface ServeOptions {
  /** Where to listen; the host and the port of the options if left out. */
  readonly listen?: readonly Address[]
  /** A token that was made for this machine. Not enough to listen beyond it. */
  readonly localToken?: string
}

/** Jobs in this process: the store, the worker, the logs and, if asked for, the API. */
export interface Runtime extends Pick<JobStore, 'enqueue' | 'enqueueMany' | 'get' | 'list' | 'cancel'> {
  /** Starts a job again that has FAILED or was CANCELLED; `run` is the one the caller saw, or whichever there is. */
  retry(jobId: string, run?: number): Promise<{ readonly run: number }>
  /** The events of a job: what is stored, then what comes, to the end of the job. */
  follow(request: string | FollowRequest): AsyncGenerator<FollowedEvent, void, void>
  /** The same as stored items. */
  followBatches(request: FollowRequest): AsyncGenerator<FollowedItem, void, void>
  deadLetters(queue: string, limit: number): Promise<readonly { readonly body: string; readonly reason: string }[]>
  /** Opens the API. */
  serve(how?: ServeOptions): Promise<Server>
  readonly store: JobStore
  readonly tokens: Tokens
  readonly worker: Worker | undefined
  /** With `work: 'own'`, how many of the jobs that came through this process have not ended. */
  readonly ownLeft: number
  /** Begins the id of every worker of this process, so that its death can be told from it. */
  readonly workerPrefix: string
  /** Ends what is under way, stores what was given, lets go of the storage. Calling it twice is fine. */
  stop(): Promise<void>
  /** The same without waiting for what runs: programs are killed and their jobs given back. */
  stopNow(): Promise<void>
}

export const schemas = [jobsTable, eventsTable]

/** The composition root: options and a profile become a running system. */
export const createRuntime = async (given: unknown, deps: RuntimeDeps = {}): Promise<Runtime> => {
  const options = loadOptions(given)
  const { clock = systemClock, random = systemRandom, emit = silent, fatal = rethrow } = deps
  const profile = await openProfile({ clock, random, emit, fatal, schemas }, options)
  try {
    return await assemble({ ...deps, clock, random, emit }, profile, options)
  } catch (error) {
    // Whoever cannot start must not go on holding the data directory.
    await profile.close()
    throw error
  }
}

type Ports = RuntimeDeps & Required<Pick<RuntimeDeps, 'clock' | 'random' | 'emit'>>

const assemble = async (deps: Ports, profile: Profile, options: Options): Promise<Runtime> => {
  const { clock, random, emit, exec = createSystemExec({ clock }), work = 'all' } = deps
  const { tables, queue, workerPrefix } = profile
  const signer = createSigner(await signingKeys(profile, random, options))
  const ids = createIds(clock, random)
  const notices = createNotices()
  const bare = createStore({ tables, queue, clock, random, ids, options: options.jobs, emit, signer })
  const told = tellingStore(bare, notices, clock)
  const tails = createTails({ clock, emit })
  const service = createLocalService({ store: told, notices, stored: tails.offer })
  const own = work === 'own' ? createOwnJobs({ clock, service, claimJob: told.claimJob }) : undefined
  const store = own ? notingStore(told, own.add) : told
  const follower = createFollower({
    tables,
    clock,
    emit,
    tails,
    look: (jobId) => statusOf(store, jobId),
    unknown: (jobId) => new JobUnknown(jobId),
    watch: store.watch,
    listen: notices.listen,
  })
  await buryDead(store, exec, profile.deadWorkers)
  let trouble: string | undefined
  const sweep = sweepAndPurge(store, profile, (reason) => {
    trouble = reason
  })
  const sweeper = createSweeper({ clock, random, emit, sweep }, options.jobs)
  const worker = work === 'none' ? undefined : startWorker({ ...deps, exec }, own ?? service, profile, options)
  const tokens = createTokens({ clock, signer })
  const servers = new Set<Server>()

  /** Workers first: whoever watches them sees how their jobs end. */
  const stop = async (end: (running: Worker) => Promise<void>): Promise<void> => {
    if (worker) await end(worker)
    await Promise.all([...servers].map((server) => server.stop()))
    await sweeper.stop()
    await profile.close()
  }
  let stopping: Promise<void> | undefined

  const followBatches = (request: FollowRequest) => wantedItems(follower.follow(request), request)
  return {
    enqueue: store.enqueue,
    enqueueMany: store.enqueueMany,
    get: store.get,
    list: store.list,
    cancel: store.cancel,
    retry: async (jobId, run) => store.redrive(jobId, run ?? (await store.get(jobId)).run),
    follow: (request) => unpackItems(followBatches(typeof request === 'string' ? { jobId: request } : request)),
    followBatches,
    deadLetters: queue.deadLetters,
    serve: async ({ listen, localToken } = {}) => {
      const [{ createServer }, { unpackToWire }] = await Promise.all([
        import('./rpc/server.ts'),
        import('./rpc/unpack.ts'),
      ])
      const server = await createServer(
        {
          clock,
          emit,
          store,
          worker: service,
          tokens,
          follower,
          unpack: unpackToWire,
          encodeEvents,
          bareEnd: (hold, end, after) =>
            endAfter(tables, logId(hold.jobId, hold.attempt), end, after, Math.floor(clock.now())),
          deadLetters: queue.deadLetters,
          unready: () => trouble,
          ...(localToken === undefined ? {} : { localToken }),
        },
        { ...options.server, ...(listen ? { listen } : {}) },
      )
      servers.add(server)
      return server
    },
    store,
    tokens,
    worker,
    get ownLeft() {
      return own?.left ?? 0
    },
    workerPrefix,
    stop: () => {
      stopping ??= stop((running) => running.stop())
      return stopping
    },
    stopNow: () => {
      // Also while it drains: the worker hears it at once, and whoever waits for the end hears of the same end.
      const ended = worker?.stopNow() ?? Promise.resolve()
      stopping ??= stop(() => ended)
      return stopping
    },
  }
}

/** Workers alone, for a store that is elsewhere. */
export const createRemoteWorker = (given: unknown, service: WorkerService, deps: RuntimeDeps = {}): Worker => {
  const { clock = systemClock, random = systemRandom, emit = silent } = deps
  const ports = { ...deps, clock, random, emit, exec: deps.exec ?? createSystemExec({ clock }) }
  return startWorker(
    ports,
    service,
    { workerPrefix: freshPrefix(random), watchedFloorMs: remoteFloorMs },
    loadOptions(given),
  )
}

/** Each flush for somebody who watches is a call over the network. */
const remoteFloorMs = 20

const startWorker = (
  deps: Ports & { readonly exec: Exec },
  service: WorkerService,
  profile: Pick<Profile, 'workerPrefix' | 'watchedFloorMs'>,
  options: Options,
): Worker => {
  const { clock, random, emit } = deps
  const worker = createWorker(
    {
      ...deps,
      service,
      handlers: createHandlers(deps.handlers),
      environment: deps.environment ?? {},
      workerPrefix: profile.workerPrefix,
      createLog: ({ job, hold }: Claim, publish) =>
        createAttemptLog({ clock, random, emit, publish }, job.execution, {
          jobId: hold.jobId,
          attempt: hold.attempt,
          watchedFloorMs: profile.watchedFloorMs,
        }),
      bareEnd: (_, end) => bareEnd(end, 1, Math.floor(clock.now())),
    },
    { ...options.worker, queues: options.worker.queues.length > 0 ? options.worker.queues : options.jobs.queues },
  )
  worker.start()
  return worker
}

/** What an earlier process left running is stopped before its jobs can run again. */
const buryDead = async (store: JobStore, exec: Exec, deadWorkers: string | undefined): Promise<void> => {
  if (deadWorkers === undefined) return
  const held = await store.sweep.heldBy(deadWorkers)
  await Promise.all(held.map(({ jobId, attempt }) => exec.killLeftovers?.(jobId, attempt)))
  await store.sweep.expireWorkers(deadWorkers)
}

/** Sweeps, purges, and notes whether the store could be reached: the sweep is what asks it now and again, whatever else happens. */
const sweepAndPurge = (store: JobStore, profile: Profile, reached: (trouble: string | undefined) => void) => ({
  ...store.sweep,
  run: async () => {
    try {
      const swept = await store.sweep.run()
      await profile.purge?.()
      reached(undefined)
      return swept
    } catch (error) {
      if (isFault(error)) reached(`the store cannot be reached (${error.code})`)
      throw error
    }
  },
})

/** What a follower must know of a job. */
const statusOf = async (store: JobStore, jobId: string) => {
  try {
    const { state, attempt, execution, result, error }: Job = await store.get(jobId)
    return { state, attempt, batchSizeBound: execution.batchSizeBound, result, error }
  } catch (error) {
    if (isFault(error) && error.code === 'JOB_UNKNOWN') return undefined
    throw error
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
