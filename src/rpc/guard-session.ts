import { constants, type ServerHttp2Session, type ServerHttp2Stream } from 'node:http2'
import type { Clock, Timer } from '../kernel/clock.ts'

export interface SessionLimits {
  readonly resetsMax: number
  readonly idleTimeoutMs: number
  readonly headersTimeoutMs: number
}

/** Abandoned calls are counted over this time. */
const windowMs = 10_000

/**
 * Closes an HTTP/2 connection that nobody uses, and one that opens calls only to abandon them: each costs the caller a few
 * bytes and us a whole call. One that never gets as far as its settings is cut: Node says goodbye to it and then keeps it for
 * ever, without an error and without noticing that its caller has hung up.
 */
export const guardSession = (clock: Clock, session: ServerHttp2Session, limits: SessionLimits): void => {
  let streams = 0
  let resets = 0
  let windowStart = clock.monotonic()
  let timer: Timer | undefined
  const rest = () => {
    timer = clock.setTimeout(() => session.close(), limits.idleTimeoutMs)
  }
  const wake = () => {
    if (timer !== undefined) clock.clearTimeout(timer)
    timer = undefined
  }
  const countReset = () => {
    const now = clock.monotonic()
    if (now - windowStart > windowMs) {
      windowStart = now
      resets = 0
    }
    resets += 1
    if (resets <= limits.resetsMax || session.destroyed) return
    session.goaway(constants.NGHTTP2_ENHANCE_YOUR_CALM)
    session.destroy()
  }
  session.on('stream', (stream: ServerHttp2Stream) => {
    streams += 1
    wake()
    stream.once('close', () => {
      if (isAbandoned(stream)) countReset()
      streams -= 1
      if (streams === 0 && !session.closed) rest()
    })
  })
  const greeting = clock.setTimeout(() => session.destroy(), limits.headersTimeoutMs)
  const greeted = () => clock.clearTimeout(greeting)
  session.once('remoteSettings', greeted)
  session.once('close', greeted)
  session.once('close', wake)
  rest()
}

/** Reset by its caller. Streams that we cut ourselves are refused ones. */
const isAbandoned = ({ rstCode, aborted }: ServerHttp2Stream): boolean =>
  rstCode === constants.NGHTTP2_REFUSED_STREAM ? false : aborted || rstCode !== constants.NGHTTP2_NO_ERROR
