import type { IncomingMessage, ServerResponse } from 'node:http'
import { constants, type Http2ServerRequest, type Http2ServerResponse } from 'node:http2'
import { createContextKey } from '@connectrpc/connect'

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
