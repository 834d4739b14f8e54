import { resolveId } from '../../client/resolve-id.ts'
import { unpackChunks } from '../../client/unpack.ts'
import type { Options } from '../../config/options.ts'
import type { Job } from '../../jobs/job.ts'
import { createRuntime, type Runtime } from '../../runtime.ts'
import type { LocalRuntime, RuntimeMode } from '../context.ts'
import { type ClientVerbs, jobsOf } from '../jobs-of-client.ts'
import { chunkEvents } from './chunk-events.ts'
import { type BackendDeps, environmentOf, localToken, prepareDirectory, socketOf } from './ground.ts'

/** Jobs of the storage itself, in this process. With `run` it executes what is enqueued through it, and lets others in. */
export const openLocal = async (deps: BackendDeps, options: Options, mode: RuntimeMode): Promise<LocalRuntime> => {
  const { clock, random, host, fatal } = deps
  const openedAt = clock.now()
  await prepareDirectory(options)
  const runtime = await createRuntime(options, {
    clock,
    random,
    fatal,
    environment: environmentOf(host),
    work: mode === 'run' ? 'own' : 'none',
  })
  try {
    if (mode === 'run') {
      const listen = await socketOf(deps, options)
      if (listen.length > 0) await runtime.serve({ listen, localToken: await localToken(deps, options) })
    }
  } catch (error) {
    await runtime.stopNow()
    throw error
  }
  return {
    ...jobsOf(verbsOf(runtime), (request) => chunkEvents(unpackChunks(runtime.followBatches(request)))),
    leftBehind: () => countWaiting(runtime, openedAt - 1),
    guests: () => ({ count: runtime.ownLeft, ended: untilNoneLeft(runtime) }),
    stopNow: () => runtime.stopNow(),
  }
}

const verbsOf = (runtime: Runtime): ClientVerbs => ({
  enqueue: runtime.enqueue,
  get: runtime.get,
  cancel: runtime.cancel,
  retry: runtime.retry,
  deadLetters: runtime.deadLetters,
  follow: runtime.follow,
  listPages: async function* (request) {
    let cursor = request.cursor
    do {
      const page = await runtime.list(cursor === undefined ? request : { ...request, cursor })
      yield page
      cursor = page.cursor
    } while (cursor !== undefined)
  },
  resolveId: (given) => resolveId(given, (prefix) => beginning(runtime, prefix)),
  close: () => runtime.stop(),
})

/** Everything that waited when we came; what came later is ours or came through us. */
const countWaiting = async (runtime: Runtime, to: number): Promise<number> => {
  let count = 0
  for await (const job of allJobs(runtime, { state: 'SCHEDULED', to })) count += job.createdAt <= to ? 1 : 0
  return count
}

async function* allJobs(
  runtime: Runtime,
  filter: { readonly state?: Job['state']; readonly to?: number },
): AsyncGenerator<Job, void, void> {
  let cursor: string | undefined
  do {
    const page = await runtime.list({ ...filter, limit: 1_000, ...(cursor === undefined ? {} : { cursor }) })
    yield* page.jobs
    cursor = page.cursor
  } while (cursor !== undefined)
}

async function* beginning(runtime: Runtime, prefix: string): AsyncGenerator<Job, void, void> {
  for await (const job of allJobs(runtime, {})) if (job.id.startsWith(prefix)) yield job
}

const untilNoneLeft = (runtime: Runtime): Promise<void> =>
  new Promise((resolve) => {
    const look = () => {
      if (runtime.ownLeft > 0) return
      unlisten?.()
      resolve()
    }
    const unlisten = runtime.worker?.onIdle(look)
    look()
  })
