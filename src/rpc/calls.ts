// What is the same for every call: faults become errors of the API, a deadline ends the call, its end is told, and a reader
// that takes nothing is cut off.

import { Code, type Interceptor, type StreamResponse } from '@connectrpc/connect'
import type { Clock } from '../kernel/clock.ts'
import type { Emit } from '../telemetry/events.ts'
import { type Connection, connectionKey } from './connection.ts'
import { ReaderStalled } from './faults.ts'
import { untilAborted } from './signals.ts'
import { isHidden, toConnectError } from './to-connect-error.ts'

export interface CallDeps {
  readonly clock: Clock
  readonly emit: Emit
}

export const createCallInterceptor =
  (deps: CallDeps, options: { readonly stallMs: number }): Interceptor =>
  (next) =>
  async (request) => {
    const call = startCall(deps, request.service.typeName, request.method.name)
    try {
      // A deadline answers at once; what it was that took so long goes on without anybody, or stops by the same signal.
      const response = await untilAborted(next(request), request.signal)
      if (!response.stream) {
        call.ended()
        return response
      }
      const connection = request.contextValues.get(connectionKey)
      return { ...response, message: watched(deps, call, response.message, connection, options.stallMs) }
    } catch (error) {
      throw call.failed(error)
    }
  }

const startCall = ({ clock, emit }: CallDeps, service: string, method: string) => {
  const startedAt = clock.monotonic()
  let isOver = false
  const ended = (code = 'Ok') => {
    if (isOver) return
    isOver = true
    emit({ name: 'call.ended', service, method, code, tookMs: clock.monotonic() - startedAt })
  }
  return {
    ended,
    failed: (error: unknown) => {
      const connectError = toConnectError(error)
      // The text is for us alone, and a field of its own: whatever it contains, it cannot pass for a line of the log.
      if (isHidden(error)) emit({ name: 'warning', text: `${service}/${method} failed: ${textOf(error)}` })
      ended(Code[connectError.code])
      return connectError
    },
  }
}

const textOf = (error: unknown): string => (error instanceof Error ? (error.stack ?? error.message) : String(error))

/** The messages as they are. Whoever pulls them decides the pace, and is watched for ever pulling again. */
async function* watched(
  { clock }: CallDeps,
  call: ReturnType<typeof startCall>,
  messages: StreamResponse['message'],
  connection: Connection,
  stallMs: number,
) {
  const stall = watchStall(clock, stallMs, () => {
    call.failed(new ReaderStalled(stallMs))
    connection.cut()
  })
  try {
    for await (const message of messages) {
      stall.given()
      yield message
      stall.taken()
    }
    call.ended()
  } catch (error) {
    throw call.failed(error)
  } finally {
    stall.end()
    // Only if the reader left: every other way out has said how it ended.
    call.ended(Code[Code.Canceled])
  }
}

/** Calls `cut` when something that was given has not been taken for `stallMs`. One timer, however many messages pass. */
const watchStall = (clock: Clock, stallMs: number, cut: () => void) => {
  let since: number | undefined
  const look = () => {
    const waited = since === undefined ? 0 : clock.monotonic() - since
    if (waited >= stallMs) cut()
    else timer = clock.setTimeout(look, stallMs - waited)
  }
  let timer = clock.setTimeout(look, stallMs)
  return {
    given: () => {
      since = clock.monotonic()
    },
    taken: () => {
      since = undefined
    },
    end: () => clock.clearTimeout(timer),
  }
}
