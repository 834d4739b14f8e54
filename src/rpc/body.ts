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

/**
 * The body of a request as it arrives, until it takes too long or is nested too deep. `abandoned` is called if the rest of it
 * stays unread: the request itself must not be destroyed, because its answer travels on the same connection.
 */
export async function* guardBody(
  clock: Clock,
  request: AnyRequest,
  limits: BodyLimits,
  abandoned: () => void,
): AsyncGenerator<Uint8Array, void, void> {
  const depthOf = depthScanFor(String(request.headers['content-type'] ?? ''))
  const pieces = request.iterator({ destroyOnReturn: false }) as AsyncIterator<Uint8Array>
  let isComplete = false
  let late: (() => void) | undefined
  const tooLate = new Promise<never>((_, reject) => {
    late = () => reject(toConnectError(new RequestSlow(limits.requestTimeoutMs)))
  })
  // Nobody may be waiting for it when it comes.
  tooLate.catch(() => {})
  const timer = clock.setTimeout(() => late?.(), limits.requestTimeoutMs)
  try {
    for (;;) {
      const piece = await Promise.race([pieces.next(), tooLate])
      if (piece.done) break
      if (depthOf && depthOf(piece.value) > limits.jsonDepthMax) throw tooDeep(limits.jsonDepthMax)
      yield piece.value
    }
    isComplete = true
  } finally {
    clock.clearTimeout(timer)
    if (!isComplete) abandoned()
  }
}

/** A body that is refused before anything of it is read. Whoever reads it gets the reason, in the form of its protocol. */
// biome-ignore lint/correctness/useYield: it has nothing to give.
export async function* refusedBody(reason: ConnectError): AsyncGenerator<Uint8Array, void, void> {
  throw reason
}

const tooDeep = (limit: number): ConnectError =>
  toConnectError(new InputInvalid('request', `is nested more than ${limit} deep`, { limit }))

/** For every form of JSON that the protocols have; binary messages have limits of their own. */
const depthScanFor = (contentType: string) => {
  if (/^application\/json\b/i.test(contentType)) return createDepthScan('bare')
  return /\+json\b/i.test(contentType) ? createDepthScan('enveloped') : undefined
}
