import { connect } from 'node:net'
import type { Interceptor, Transport } from '@connectrpc/connect'
import { createConnectTransport, Http2SessionManager } from '@connectrpc/connect-node'
import { AddressInvalid } from './faults.ts'

/** A way to a server. One connection carries all its calls and streams. */
export interface Wire {
  readonly transport: Transport
  readonly address: string
  /** Cuts the connection and whatever runs over it. */
  close(): void
}

/** Far above a page of the largest jobs, and far below what would hurt. */
const readBytesMax = 64 * 1_024 * 1_024
/** A stored item of the largest size fits into it whole, so that one round trip brings it. */
const windowBytes = 1_024 * 1_024
/** A connection that died without a word is noticed within the sum of these. */
const pingIntervalMs = 20_000
const pingTimeoutMs = 10_000

/** Connects at the first call, and again whenever the connection was lost. Messages travel as they are: compressing costs more. */
export const openWire = (address: string, token: string | undefined): Wire => {
  const { baseUrl, socketPath } = readAddress(address)
  const sessions = new Http2SessionManager(
    baseUrl,
    { pingIntervalMs, pingTimeoutMs, pingIdleConnection: false, idleConnectionTimeoutMs: 15 * 60_000 },
    {
      settings: { enablePush: false, initialWindowSize: windowBytes },
      ...(socketPath === undefined ? {} : { createConnection: () => connect(socketPath) }),
    },
  )
  const transport = createConnectTransport({
    baseUrl,
    httpVersion: '2',
    sessionManager: guarded(sessions),
    useBinaryFormat: true,
    acceptCompression: [],
    readMaxBytes: readBytesMax,
    interceptors: token === undefined ? [] : [withToken(token)],
  })
  return { transport, address, close: () => sessions.abort() }
}

/**
 * A session that breaks fails its streams first and then says so itself. Whoever calls again in between, or closes, makes the
 * library drop a session that nobody listens to any more, and its word would then end the process.
 */
const guarded = (
  sessions: Http2SessionManager,
): Pick<Http2SessionManager, 'authority' | 'request' | 'notifyResponseByteRead'> => {
  const known = new WeakSet<object>()
  return {
    authority: sessions.authority,
    request: async (...given) => {
      const stream = await sessions.request(...given)
      const { session } = stream
      if (session && !known.has(session)) {
        known.add(session)
        session.on('error', () => {})
      }
      return stream
    },
    notifyResponseByteRead: (stream) => sessions.notifyResponseByteRead(stream),
  }
}

const unixScheme = 'unix:'

const readAddress = (address: string): { readonly baseUrl: string; readonly socketPath?: string } => {
  if (address.startsWith(unixScheme)) {
    const socketPath = address.slice(unixScheme.length).replace(/^\/\/(?=\/)/, '')
    if (!socketPath) throw new AddressInvalid(address)
    // The server checks the name that it is called by; over a socket file there is only this one.
    return { baseUrl: 'http://localhost', socketPath }
  }
  if (!/^https?:\/\//.test(address) || !URL.canParse(address)) throw new AddressInvalid(address)
  return { baseUrl: address }
}

const withToken =
  (token: string): Interceptor =>
  (next) =>
  (request) => {
    request.header.set('Authorization', `Bearer ${token}`)
    return next(request)
  }
