// One address, two protocols. An HTTP/1 server listens, and each connection shows by its first bytes whether it stays there or
// goes to the HTTP/2 server beside it.
// L1  Nothing is left after `cut`: connections that never said anything, sessions, sockets.
// L2  Every limit is given explicitly, so that an upgrade of Node cannot change us.

import { createServer as createHttp1 } from 'node:http'
import { createServer as createHttp2, type ServerHttp2Session } from 'node:http2'
import type { ListenOptions, Socket } from 'node:net'
import { assert } from '../kernel/assert.ts'
import type { Clock } from '../kernel/clock.ts'
import type { AnyRequest, AnyResponse } from './connection.ts'
import { AddressUnusable } from './faults.ts'
import { guardSession, type SessionLimits } from './guard-session.ts'
import { tellProtocol } from './tell-protocol.ts'

export interface ListenerLimits extends SessionLimits {
  readonly connectionsMax: number
  readonly streamsMax: number
  readonly requestTimeoutMs: number
}

export interface Listener {
  /** The port, if there is one. */
  readonly port: number | undefined
  /** Takes no more connections, and closes each as soon as nothing is under way on it. Resolves when the last is gone. */
  close(): Promise<void>
  /** Closes what is left by force. */
  cut(): void
}

const headBytesMax = 16 * 1_024
const headersMax = 100
/** Frames that are against the rules, and streams beyond the limit, before a session is closed. */
const offencesMax = 100
const sessionMegabytes = 10
/** How often Node looks for requests that take too long. */
const lookEveryMs = 1_000

export const openListener = async (
  clock: Clock,
  handle: (request: AnyRequest, response: AnyResponse) => void,
  at: ListenOptions,
  limits: ListenerLimits,
): Promise<Listener> => {
  const http1 = createHttp1(
    {
      headersTimeout: Math.min(limits.headersTimeoutMs, limits.requestTimeoutMs),
      requestTimeout: limits.requestTimeoutMs,
      keepAliveTimeout: limits.idleTimeoutMs,
      connectionsCheckingInterval: Math.min(lookEveryMs, limits.headersTimeoutMs),
      maxHeaderSize: headBytesMax,
      insecureHTTPParser: false,
      keepAlive: true,
      noDelay: true,
    },
    handle,
  )
  http1.maxConnections = limits.connectionsMax
  http1.maxHeadersCount = headersMax
  const http2 = createHttp2(
    {
      maxSessionMemory: sessionMegabytes,
      maxHeaderListPairs: headersMax,
      maxSessionInvalidFrames: offencesMax,
      maxSessionRejectedStreams: offencesMax,
      settings: { maxConcurrentStreams: limits.streamsMax, maxHeaderListSize: headBytesMax, enablePush: false },
    },
    handle,
  )
  const sockets = new Set<Socket>()
  /** Those that have not shown yet what they speak. */
  const silent = new Set<Socket>()
  const sessions = new Set<ServerHttp2Session>()
  http2.on('session', (session) => {
    sessions.add(session)
    session.once('close', () => sessions.delete(session))
    // What a peer does wrong ends its session and nothing else.
    session.on('error', () => session.destroy())
    guardSession(clock, session, limits)
  })

  const [takeHttp1] = http1.listeners('connection') as [(socket: Socket) => void]
  assert(takeHttp1, 'an HTTP server that takes no connections')
  http1.removeAllListeners('connection')
  http1.on('connection', (socket: Socket) => {
    sockets.add(socket)
    silent.add(socket)
    socket.once('close', () => {
      sockets.delete(socket)
      silent.delete(socket)
    })
    tellProtocol(clock, socket, limits.headersTimeoutMs, (protocol) => {
      silent.delete(socket)
      if (protocol === 'http/1') return takeHttp1.call(http1, socket)
      // HTTP/1 servers let a connection be half open; a session would never notice that its caller is gone.
      socket.allowHalfOpen = false
      http2.emit('connection', socket)
    })
  })

  await new Promise<void>((resolve, reject) => {
    const refuse = (cause: Error) => reject(new AddressUnusable(`cannot listen: ${cause.message}`, { cause }))
    http1.once('error', refuse)
    http1.listen(at, () => {
      http1.off('error', refuse)
      resolve()
    })
  })
  const address = http1.address()
  return {
    port: typeof address === 'object' && address !== null ? address.port : undefined,
    close: () =>
      new Promise((resolve) => {
        http1.close(() => resolve())
        http1.closeIdleConnections()
        for (const session of sessions) session.close()
        for (const socket of silent) socket.destroy()
      }),
    cut: () => {
      for (const session of sessions) session.destroy()
      for (const socket of sockets) socket.destroy()
    },
  }
}
