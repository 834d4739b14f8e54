import { createServer, type ServerHttp2Session } from 'node:http2'
import type { AddressInfo, ListenOptions, Socket } from 'node:net'
import type { ConnectRouter } from '@connectrpc/connect'
import { connectNodeAdapter } from '@connectrpc/connect-node'

/** How a connection can be lost. */
export const losses = ['socket destroyed', 'socket reset', 'session destroyed', 'session closed in error'] as const
export type Loss = (typeof losses)[number]

export interface TestServer {
  readonly address: string
  readonly port: number
  /** How many connections were made. */
  connections(): number
  lose(how: Loss): void
  stop(): Promise<void>
}

/** A real server on loopback or on a socket file. */
export const startServer = async (
  routes: (router: ConnectRouter) => void,
  where: ListenOptions = { port: 0, host: '127.0.0.1' },
): Promise<TestServer> => {
  const sessions = new Set<ServerHttp2Session>()
  const sockets = new Set<Socket>()
  let connections = 0
  const server = createServer(connectNodeAdapter({ routes }))
  server.on('connection', (socket: Socket) => {
    connections += 1
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
    socket.on('error', () => {})
  })
  server.on('session', (session) => {
    sessions.add(session)
    session.on('close', () => sessions.delete(session))
    session.on('error', () => {})
  })
  await new Promise<void>((resolve) => server.listen(where, resolve))
  const lose = (how: Loss) => {
    if (how === 'socket destroyed') for (const socket of sockets) socket.destroy()
    if (how === 'socket reset') for (const socket of sockets) socket.resetAndDestroy()
    for (const session of how.startsWith('session') ? sessions : []) {
      if (how === 'session closed in error') session.goaway(2)
      session.destroy()
    }
  }
  const at = server.address() as AddressInfo | string
  return {
    address: typeof at === 'string' ? `unix:${at}` : `http://127.0.0.1:${at.port}`,
    port: typeof at === 'string' ? 0 : at.port,
    connections: () => connections,
    lose,
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        lose('socket destroyed')
      }),
  }
}
