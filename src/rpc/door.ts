// The door: every request comes through here, and most of what must be refused is refused before anything of it is read.
// D1  Host, Origin and Sec-Fetch-Site first (a page of another site must learn nothing), then the token, then room.
// D2  No header of ours ever invites another site; there is no CORS here.
// D3  Calls are POST alone. A browser can make some cross-site POSTs without asking, but not with an `authorization` header,
//     and D1 refuses them before that. This is why plain `curl -d '{}'` works without a Connect-Protocol-Version.
// D4  Health needs no token and tells nothing secret.

import { Code, ConnectError, type ConnectRouter, createContextValues } from '@connectrpc/connect'
import { universalRequestFromNodeRequest, universalResponseToNodeResponse } from '@connectrpc/connect-node'
import type { Clock } from '../kernel/clock.ts'
import type { Fault } from '../kernel/fault.ts'
import type { Emit } from '../telemetry/events.ts'
import { answer, answerHealth } from './answer.ts'
import { type BodyLimits, guardBody, refusedBody } from './body.ts'
import { type AnyRequest, type AnyResponse, abandonBody, connectionKey, connectionOf } from './connection.ts'
import { CallUnauthenticated, ServerBusy, ServerDraining } from './faults.ts'
import type { Arrival } from './foreign.ts'
import { toConnectError } from './to-connect-error.ts'

export interface DoorDeps {
  readonly clock: Clock
  readonly emit: Emit
  readonly handlers: ConnectRouter['handlers']
  readonly foreignTo: (arrival: Arrival) => Fault | undefined
  readonly isAuthorized: (header: string | undefined) => boolean
  readonly isDraining: () => boolean
  /** Why the server should get no calls for now, as a text that anybody may read. */
  readonly unready: () => string | undefined
  /** Told whenever the last call has ended. */
  readonly idle: () => void
}

export interface DoorOptions extends BodyLimits {
  readonly callsMax: number
}

type Handler = ConnectRouter['handlers'][number]

export const createDoor = (deps: DoorDeps, options: DoorOptions) => {
  const handlers = new Map(deps.handlers.map((handler) => [handler.requestPath, handler]))
  let calls = 0

  const refusal = (request: AnyRequest): Fault | undefined => {
    if (!deps.isAuthorized(request.headers.authorization)) return new CallUnauthenticated()
    if (deps.isDraining()) return new ServerDraining()
    if (calls >= options.callsMax) return new ServerBusy(options.callsMax)
    return undefined
  }

  const call = async (handler: Handler, request: AnyRequest, response: AnyResponse) => {
    const refused = refusal(request)
    calls += 1
    response.once('close', () => {
      calls -= 1
      if (calls === 0) deps.idle()
    })
    const body = refused ? refusedBody(toConnectError(refused)) : guardBody(deps.clock, request, options)
    try {
      const values = createContextValues().set(connectionKey, connectionOf(response))
      const arrived = universalRequestFromNodeRequest(request, response, undefined, values)
      const answered = await handler({ ...arrived, body: body.pieces })
      if (!body.finish()) abandonBody(deps.clock, request, response, options.requestTimeoutMs)
      await universalResponseToNodeResponse(answered, response)
    } catch (error) {
      body.finish()
      if (!isGivenUp(error)) deps.emit({ name: 'warning', text: `an answer could not be sent: ${String(error)}` })
      connectionOf(response).cut()
    }
  }

  return {
    get calls(): number {
      return calls
    },
    handle: (request: AnyRequest, response: AnyResponse): void => {
      const foreign = deps.foreignTo(arrivalOf(request))
      const path = (request.url ?? '').split('?', 1)[0] ?? ''
      const handler = handlers.get(path)
      if (foreign) answer(request, response, 403, { code: 'permission_denied', message: foreign.message })
      else if (handler) void call(handler, request, response)
      else if (path === '/healthz') answerHealth(request, response, undefined)
      else if (path === '/readyz') answerHealth(request, response, deps.isDraining() ? 'draining' : deps.unready())
      else answer(request, response, 404, { code: 'unimplemented', message: 'there is nothing here' })
    },
  }
}

/** The caller went away: nothing that anybody has to know. */
const isGivenUp = (error: unknown): boolean => {
  const { code } = ConnectError.from(error)
  return code === Code.Aborted || code === Code.Canceled
}

const arrivalOf = (request: AnyRequest): Arrival => ({
  headers: request.headers,
  authority: 'authority' in request ? request.authority : undefined,
  localAddress: request.socket?.localAddress,
})
