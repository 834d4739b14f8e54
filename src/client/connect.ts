import { createIds } from '../kernel/ids.ts'
import { createSharedAbort } from '../kernel/shared-abort.ts'
import type { WorkerService } from '../worker/service.ts'
import { type CallerDeps, createCaller } from './caller.ts'
import { createJobs, type Jobs } from './jobs.ts'
import { createRemoteWorkerService } from './remote-service.ts'
import { createTaskTokens } from './task-tokens.ts'
import { openWire, type Wire } from './transport.ts'
import { createWatching, type Watching } from './watch.ts'

export interface ConnectOptions {
  /** `http://host:port`, `https://host:port` or `unix:/path/to/socket`. */
  readonly address: string
  /** What the server knows us by. */
  readonly token?: string | undefined
}

export interface ClientOptions {
  /** The longest that a call takes, its repetitions included. */
  readonly deadlineMs?: number
  /** The longest that one try takes. */
  readonly tryMs?: number
  /** How long a stream looks for a server that it has lost. */
  readonly patienceMs?: number
  /** A stream that is silent for so long is dead: keep-alives come more often. */
  readonly silenceMs?: number
}

const defaults = { deadlineMs: 30_000, tryMs: 10_000, patienceMs: 5 * 60_000, silenceMs: 60_000 } as const
/** Well within a lease: whoever sends a heartbeat must know in time that it did not arrive. */
const workerDefaults = { deadlineMs: 10_000, tryMs: 5_000 } as const

export type Ports = Pick<CallerDeps, 'clock' | 'random'>

export interface Client extends Jobs, Watching {
  /** Cuts what is under way and lets go of the connection. */
  close(): void
}

/** A server's API in our own words. Connects at the first call. */
export const createClient = ({ address, token, clock, random, ...options }: ConnectOptions & ClientOptions & Ports) =>
  createClientOver({ clock, random, wire: openWire(address, token) }, options)

/** The same over a way to the server that is there already. */
export const createClientOver = (deps: Ports & { readonly wire: Wire }, options: ClientOptions = {}): Client => {
  const { link, settings, call, close } = open(deps, options)
  return {
    ...createJobs({ transport: link.transport, call, ids: createIds(deps.clock, deps.random) }),
    ...createWatching(link, settings),
    close,
  }
}

export interface RemoteService extends WorkerService {
  close(): void
}

/** What a worker needs of a store, from a server. Calls that fail for a while are repeated for less long: leases do not wait. */
export const createRemoteService = ({
  address,
  token,
  clock,
  random,
  ...options
}: ConnectOptions & ClientOptions & Ports) =>
  createRemoteServiceOver({ clock, random, wire: openWire(address, token) }, options)

export const createRemoteServiceOver = (
  deps: Ports & { readonly wire: Wire },
  options: ClientOptions = {},
): RemoteService => {
  const { link, call, close } = open(deps, { ...workerDefaults, ...options })
  const tokens = createTaskTokens(deps.clock)
  return { ...createRemoteWorkerService({ transport: link.transport, call, tokens }), close }
}

const open = ({ clock, random, wire }: Ports & { readonly wire: Wire }, options: ClientOptions) => {
  const settings = { ...defaults, ...options }
  const closing = createSharedAbort()
  const { transport, address } = wire
  const link = { clock, random, address, transport, closed: closing.signal }
  const close = () => {
    closing.abort()
    wire.close()
  }
  return { link, settings, call: createCaller(link, settings), close }
}
