import type { ConnectError } from '@connectrpc/connect'
import { InputInvalid } from '../jobs/faults.ts'
import type { Clock } from '../kernel/clock.ts'
import type { AnyRequest } from './connection.ts'
import { RequestSlow } from './faults.ts'
import { createDepthScan } from './json-depth.ts'
import { toConnectError } from './to-connect-error.ts'

export interface BodyLimits {
  readonly requestTimeoutMs: number
  readonly jsonDepthMax: number
}

export interface Body {
  /** As they arrive, until they take too long or are nested too deep. */
  readonly pieces: AsyncIterable<Uint8Array>
  /** No more of it is wanted; whether that was all of it. Whoever reads does not tell us when it stops. */
  finish(): boolean
}

export const guardBody = (clock: Clock, request: AnyRequest, limits: BodyLimits): Body => {
  const depthOf = depthScanFor(String(request.headers['content-type'] ?? ''))
  let isLate = false
  let wake = () => {}
  const look = () => wake()
  const timer = clock.setTimeout(() => {
    isLate = true
    wake()
  }, limits.requestTimeoutMs)
  // Not an iterator of Node's: that one destroys the request when its reader stops, and the answer travels on its connection.
  async function* read() {
    for (const event of events) request.on(event, look)
    for (;;) {
      const piece: Uint8Array | null = request.read()
      if (piece !== null) {
        if (depthOf && depthOf(piece) > limits.jsonDepthMax) throw tooDeep(limits.jsonDepthMax)
        yield piece
      } else if (request.readableEnded) return
      else if (request.destroyed) throw toConnectError(new DOMException('the request was cut off', 'AbortError'))
      else if (isLate) throw toConnectError(new RequestSlow(limits.requestTimeoutMs))
      else {
        await new Promise<void>((resolve) => {
          wake = resolve
        })
      }
    }
  }
  return {
    pieces: read(),
    finish: () => {
      clock.clearTimeout(timer)
      for (const event of events) request.off(event, look)
      return request.readableEnded
    },
  }
}

/** Whatever may have changed what a read gives. */
const events = ['readable', 'end', 'close', 'error'] as const

/** A body that is refused before anything of it is read. Whoever reads it gets the reason, in the form of its protocol. */
export const refusedBody = (reason: ConnectError): Body => ({ pieces: refuse(reason), finish: () => false })

// biome-ignore lint/correctness/useYield: it has nothing to give.
const refuse = async function* (reason: ConnectError): AsyncGenerator<Uint8Array, void, void> {
  throw reason
}

const tooDeep = (limit: number): ConnectError =>
  toConnectError(new InputInvalid('request', `is nested more than ${limit} deep`, { limit }))

/** For every form of JSON that the protocols have; binary messages have limits of their own. */
const depthScanFor = (contentType: string) => {
  if (/^application\/json\b/i.test(contentType)) return createDepthScan('bare')
  return /\+json\b/i.test(contentType) ? createDepthScan('enveloped') : undefined
}
