import type { IncomingMessage, ServerResponse } from 'node:http'
import { constants, type Http2ServerRequest, type Http2ServerResponse } from 'node:http2'
import { createContextKey } from '@connectrpc/connect'
import type { Clock } from '../kernel/clock.ts'

/** Requests and responses of both versions of HTTP. */
export type AnyRequest = IncomingMessage | Http2ServerRequest
export type AnyResponse = ServerResponse | Http2ServerResponse

/** What a call may do to the connection it came by. */
export interface Connection {
  /** Ends the call at once, with an error that says "come again" where the protocol has one. */
  cut(): void
}

export const connectionKey = createContextKey<Connection>({ cut: () => {} })

export const connectionOf = (response: AnyResponse): Connection => ({
  cut: () => {
    // Every gRPC client reads a refused stream as Unavailable, and a reset needs no room in a window that is full.
    if ('stream' in response) response.stream?.close(constants.NGHTTP2_REFUSED_STREAM)
    else response.destroy()
  },
})

/** HTTP/1 would otherwise read the rest of a refused request, however long, only to keep the connection. */
export const closeAfter = (response: AnyResponse): void => {
  if (!('stream' in response) && !response.headersSent) response.setHeader('connection', 'close')
}

/**
 * The rest of the request is not wanted, but the answer must arrive. HTTP/2 ends a call only when both sides have ended: what
 * still comes is thrown away, for as long as a request may take.
 */
export const abandonBody = (clock: Clock, request: AnyRequest, response: AnyResponse, timeoutMs: number): void => {
  closeAfter(response)
  if (!('stream' in response) || response.stream?.destroyed !== false) return
  const timer = clock.setTimeout(() => connectionOf(response).cut(), timeoutMs)
  response.once('close', () => clock.clearTimeout(timer))
  request.resume()
}
