import { request as httpRequest, type IncomingHttpHeaders, type RequestOptions } from 'node:http'
import { crc32 } from 'node:zlib'
import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import { type Client, createClient, type Interceptor, type Transport } from '@connectrpc/connect'
import { createConnectTransport, createGrpcTransport, createGrpcWebTransport } from '@connectrpc/connect-node'
import { expect, onTestFinished } from 'vitest'
import { EventType, type JobEvent, JobEventSchema } from '../../api/gen/millrace/v1/event_pb.js'
import { EventService, JobService, WorkerService } from '../../api/gen/millrace/v1/service_pb.js'
import { serverOptions } from '../../src/config/sections/server.ts'
import type { Hold } from '../../src/jobs/job.ts'
import { systemClock } from '../../src/kernel/clock.ts'
import { eventTypes, type StoredItem } from '../../src/log/event.ts'
import type { Entry, Follower, FollowRequest } from '../../src/log/follower.ts'
import { type Address, createServer, type Server, type ServerDeps } from '../../src/rpc/server.ts'
import { createRuntime, type Runtime } from '../../src/runtime.ts'
import type { TelemetryEvent } from '../../src/telemetry/events.ts'

export const token = 'a-token-for-tests-0123456789'

export interface Rig {
  readonly server: Server
  readonly runtime: Runtime
  readonly port: number
  readonly baseUrl: string
  readonly events: TelemetryEvent[]
  /** What the follower was asked, in order. */
  readonly followed: FollowRequest[]
}

export interface RigOptions {
  readonly deps?: Partial<ServerDeps>
  readonly options?: Readonly<Record<string, unknown>>
  readonly listen?: readonly Address[]
  readonly follower?: Follower
  /** Changes the dependencies that stand over the runtime. */
  readonly over?: (deps: ServerDeps) => Partial<ServerDeps>
}

/** A real server on loopback over a real runtime in memory. Everything is gone when the test ends. */
export const startRig = async (given: RigOptions = {}): Promise<Rig> => {
  const events: TelemetryEvent[] = []
  const followed: FollowRequest[] = []
  const emit = (event: TelemetryEvent) => void events.push(event)
  const runtime = await createRuntime(
    { profile: 'memory', jobs: { queues: ['default', 'other'] } },
    { emit, work: 'none' },
  )
  onTestFinished(() => runtime.stop())
  const follower = given.follower ?? scripted([])
  const base: ServerDeps = {
    clock: systemClock,
    emit,
    store: runtime.store,
    tokens: runtime.tokens,
    worker: runtime.store,
    deadLetters: async () => [],
    follower: {
      follow: (request) => {
        followed.push(request)
        return follower.follow(request)
      },
    },
    unpack,
    encodeEvents: (all) => all.map(encodeEvent),
    bareEnd: async (_: Hold, info, after) =>
      encodeEvent(
        create(JobEventSchema, {
          sequence: BigInt(after + 1),
          type: EventType.PROCESS_END,
          timestamp: { seconds: 1n },
          data: { case: 'processEnd', value: { error: info.error ?? '' } },
        }),
      ),
  }
  const server = await createServer(
    { ...base, ...given.over?.(base), ...given.deps },
    {
      ...serverOptions.parse({ port: 0, tokens: [token], ...given.options }),
      ...(given.listen ? { listen: given.listen } : {}),
    },
  )
  onTestFinished(() => server.stop())
  const port = server.addresses().flatMap((at) => ('port' in at ? [at.port] : []))[0] ?? 0
  return { server, runtime, port, baseUrl: `http://127.0.0.1:${port}`, events, followed }
}

/** Gives the entries and ends, or waits for the end of its signal where it says 'wait'. */
export const scripted = (entries: readonly (Entry | 'wait')[]): Follower => ({
  async *follow({ signal }) {
    for (const entry of entries) {
      if (entry !== 'wait') yield entry
      else await new Promise((resolve) => signal?.addEventListener('abort', resolve))
    }
  },
})

/** One event as an item of its own. */
export const encodeEvent = (event: JobEvent): StoredItem => {
  const payload = toBinary(JobEventSchema, event)
  const { seconds = 0n, nanos = 0 } = event.timestamp ?? {}
  return {
    sequence: Number(event.sequence),
    endSequence: Number(event.sequence),
    timestamp: Number(seconds) * 1_000 + nanos / 1_000_000,
    type: event.type as number as StoredItem['type'],
    payload,
    encoding: 0,
    crc: crc32(payload),
  }
}

/** A batch here is its lines with breaks between them, which is all that these tests need of one. */
export const aBatch = (sequence: number, lines: readonly string[], timestamp = 1_000): StoredItem => {
  const payload = Buffer.from(lines.join('\n'))
  return {
    sequence,
    endSequence: sequence + lines.length - 1,
    timestamp,
    type: eventTypes.outputBatch,
    payload,
    encoding: 0,
    crc: crc32(payload),
  }
}

const unpack = (item: StoredItem, fromSequence: number): JobEvent[] => {
  if (item.type !== eventTypes.outputBatch) return [fromBinary(JobEventSchema, item.payload)]
  const lines = Buffer.from(item.payload).toString().split('\n')
  return lines.flatMap((line, at) =>
    item.sequence + at < fromSequence
      ? []
      : [
          create(JobEventSchema, {
            sequence: BigInt(item.sequence + at),
            timestamp: { seconds: BigInt(Math.floor(item.timestamp / 1_000) + at) },
            type: EventType.OUTPUT,
            data: { case: 'output', value: { output: Buffer.from(line) } },
          }),
        ],
  )
}

const bearer =
  (shown: string | undefined): Interceptor =>
  (next) =>
  (request) => {
    if (shown !== undefined) request.header.set('authorization', `Bearer ${shown}`)
    return next(request)
  }

/** Every way to speak to the server. */
export const transports = (baseUrl: string, shown: string | undefined = token): Readonly<Record<string, Transport>> => {
  const common = { baseUrl, interceptors: [bearer(shown)] }
  return {
    'gRPC over h2c': createGrpcTransport(common),
    'gRPC-Web over HTTP/1.1': createGrpcWebTransport({ ...common, httpVersion: '1.1' }),
    'gRPC-Web over h2c': createGrpcWebTransport({ ...common, httpVersion: '2' }),
    'Connect over HTTP/1.1': createConnectTransport({ ...common, httpVersion: '1.1' }),
    'Connect over h2c': createConnectTransport({ ...common, httpVersion: '2' }),
    'Connect JSON over HTTP/1.1': createConnectTransport({ ...common, httpVersion: '1.1', useBinaryFormat: false }),
  }
}
export const transportNames = Object.keys(transports('http://127.0.0.1:1'))

export interface Clients {
  readonly jobs: Client<typeof JobService>
  readonly events: Client<typeof EventService>
  readonly workers: Client<typeof WorkerService>
}

export const clientsOf = (transport: Transport): Clients => ({
  jobs: createClient(JobService, transport),
  events: createClient(EventService, transport),
  workers: createClient(WorkerService, transport),
})

export const clients = (
  rig: Pick<Rig, 'baseUrl'>,
  name = 'gRPC over h2c',
  shown: string | undefined = token,
): Clients => clientsOf(transports(rig.baseUrl, shown)[name] as Transport)

export interface Answer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly text: string
}

/** As curl would: any header, any body, nothing added. */
export const curl = (
  at: Pick<Rig, 'port'> | { readonly socketPath: string },
  path: string,
  { body, ...options }: RequestOptions & { readonly body?: string | Uint8Array } = {},
): Promise<Answer> =>
  new Promise((resolve, reject) => {
    const where = 'port' in at ? { host: '127.0.0.1', port: at.port } : at
    const request = httpRequest({ method: 'POST', agent: false, ...where, path, ...options }, (response) => {
      const parts: Buffer[] = []
      response.on('data', (part: Buffer) => parts.push(part))
      response.on('error', reject)
      response.on('end', () =>
        resolve({
          status: response.statusCode ?? 0,
          headers: response.headers,
          text: Buffer.concat(parts).toString(),
        }),
      )
    })
    request.on('error', reject)
    request.end(body)
  })

export const json = { 'content-type': 'application/json', authorization: `Bearer ${token}` }
export const jobsPath = (method: string): string => `/millrace.v1.JobService/${method}`

/** For what happens on the other side of a connection: looks again and again, for as long as a slow machine may take. */
export const eventually = <T>(look: () => T) => expect.poll(look, { timeout: 30_000, interval: 5 })
