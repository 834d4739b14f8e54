// The server: services, door and listeners put together, and the life that machines/server.ts draws for them.

import { createConnectRouter } from '@connectrpc/connect'
import { EventService, JobService, WorkerService } from '../../api/gen/millrace/v1/service_pb.js'
import { server as machine } from '../../machines/server.ts'
import type { ServerOptions } from '../config/sections/server.ts'
import type { Clock } from '../kernel/clock.ts'
import { createRoot } from '../kernel/start.ts'
import type { Emit } from '../telemetry/events.ts'
import { createBearerCheck } from './bearer.ts'
import { createCallInterceptor } from './calls.ts'
import { createDoor } from './door.ts'
import { createEventService, type EventDeps } from './events.ts'
import { ServerUnauthenticated } from './faults.ts'
import { createForeignCheck, isLoopback } from './foreign.ts'
import { createJobService, type JobDeps } from './jobs.ts'
import { type Listener, openListener } from './listener.ts'
import { openUnixSocket } from './unix-socket.ts'
import { createWorkerService, type WorkerDeps } from './workers.ts'

export type Address = { readonly host: string; readonly port: number } | { readonly path: string }

export interface ServerDeps extends Omit<JobDeps & WorkerDeps & EventDeps, 'draining' | 'clock' | 'store'> {
  readonly clock: Clock
  readonly emit: Emit
  readonly store: JobDeps['store'] & WorkerDeps['store']
  /** A token that was made once for this machine and lies where only its owner can read it. Not enough to listen beyond it. */
  readonly localToken?: string
  /** Why the server should get no calls for now; anybody may read it. */
  readonly unready?: () => string | undefined
}

export interface Server {
  /** Where it listens, with the port that was really taken. */
  addresses(): readonly Address[]
  /** Refuses new calls, lets those under way end, ends streams so that they can be resumed, then closes. Twice is fine. */
  stop(): Promise<void>
}

/** How long connections may take to close by themselves once nothing is under way. */
const farewellMs = 1_000
/** Longer than this no timer is, so no deadline either. */
const timeoutMsMax = 2 ** 31 - 1

/** Resolves when it listens on all addresses; listens on none if one of them cannot be had. */
export const createServer = async (
  deps: ServerDeps,
  options: ServerOptions & { readonly listen?: readonly Address[] },
): Promise<Server> => {
  const wanted = options.listen ?? [{ host: options.host, port: options.port }]
  for (const at of wanted) {
    if ('host' in at && !isLoopback(at.host) && options.tokens.length === 0) throw new ServerUnauthenticated(at.host)
  }
  const { clock, emit, localToken, unready = () => undefined } = deps
  const actor = createRoot(machine, { clock, input: { drainMs: options.drainMs, farewellMs } })
  const draining = new AbortController()
  const closed = new Promise<void>((resolve) => actor.subscribe({ complete: resolve }))

  const ownHosts = wanted.flatMap((at) => ('host' in at ? [at.host] : []))
  const door = createDoor(
    {
      clock,
      emit,
      handlers: routesOf({ ...deps, draining: draining.signal }, options).handlers,
      foreignTo: createForeignCheck([...ownHosts, ...options.hosts]),
      isAuthorized: createBearerCheck(localToken === undefined ? options.tokens : [...options.tokens, localToken]),
      isDraining: () => draining.signal.aborted,
      unready,
      idle: () => {
        if (draining.signal.aborted) actor.send({ type: 'idle' })
      },
    },
    options,
  )
  const listeners = await openAll(wanted, (at) => open(clock, door.handle, at, options))

  const close = async () => {
    await Promise.all(listeners.map((listener) => listener.close()))
    actor.send({ type: 'released' })
  }
  let isClosing = false
  actor.subscribe((snapshot) => {
    if (snapshot.hasTag('refusing') && !draining.signal.aborted) {
      draining.abort()
      if (door.calls === 0) actor.send({ type: 'idle' })
    }
    if (snapshot.hasTag('closing') && !isClosing) {
      isClosing = true
      void close()
    }
    if (snapshot.hasTag('cutting')) for (const listener of listeners) listener.cut()
  })
  actor.start()
  return {
    addresses: () =>
      wanted.map((at, index) => ('host' in at ? { host: at.host, port: listeners[index]?.port ?? at.port } : at)),
    stop: () => {
      if (!draining.signal.aborted) actor.send({ type: 'stop' })
      return closed
    },
  }
}

const routesOf = (deps: ServerDeps & { readonly draining: AbortSignal }, options: ServerOptions) =>
  createConnectRouter({
    // No compression in either direction: on a loopback it makes streams several times slower, stored batches are compressed
    // already, and what is not accepted cannot be a bomb.
    acceptCompression: [],
    readMaxBytes: options.messageBytesMax,
    maxTimeoutMs: timeoutMsMax,
    requireConnectProtocolHeader: false,
    // A name that is spelled wrongly is refused: silently doing something else is worse for whoever types JSON by hand.
    jsonOptions: { ignoreUnknownFields: false },
    interceptors: [createCallInterceptor(deps, options)],
  })
    .service(JobService, createJobService(deps))
    .service(EventService, createEventService(deps))
    .service(WorkerService, createWorkerService(deps))

const open = (clock: Clock, handle: ReturnType<typeof createDoor>['handle'], at: Address, options: ServerOptions) =>
  'path' in at
    ? openUnixSocket(at.path, (path) => openListener(clock, handle, { path }, options))
    : openListener(clock, handle, { host: at.host, port: at.port }, options)

/** All of them, or none. */
const openAll = async (
  wanted: readonly Address[],
  openOne: (at: Address) => Promise<Listener>,
): Promise<readonly Listener[]> => {
  const opened = await Promise.allSettled(wanted.map(openOne))
  const listeners = opened.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []))
  const failed = opened.find((one) => one.status === 'rejected')
  if (!failed) return listeners
  for (const listener of listeners) listener.cut()
  await Promise.all(listeners.map((listener) => listener.close()))
  throw failed.reason
}
