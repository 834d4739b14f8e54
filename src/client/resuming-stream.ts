// A stream of a job's log that survives its connections. The server's stream may be cut at any place, also in the middle of a
// batch; we ask again from where we stand (position.ts) until JOB_ENDED was handed on, and nobody above notices.

import type { Clock } from '../kernel/clock.ts'
import { type Fault, isFault } from '../kernel/fault.ts'
import type { Random } from '../kernel/random.ts'
import type { RetryPolicy } from '../kernel/retry.ts'
import { pause, pauseAfter } from './caller.ts'
import { ClientClosed, Unreachable } from './faults.ts'
import { faultOf } from './from-connect-error.ts'
import { type LinkedSignal, linkSignals } from './linked-signal.ts'
import { createPosition, type Piece, type Whence } from './position.ts'
import { createWatchdog } from './watchdog.ts'

export interface StreamDeps {
  readonly clock: Clock
  readonly random: Random
  readonly address: string
  /** Aborted when the client is closed. */
  readonly closed: AbortSignal
}

export interface StreamOptions {
  /** How long a server that has never answered is tried. */
  readonly deadlineMs: number
  /** How long a server that had answered is tried again. */
  readonly patienceMs: number
  /** A stream that is silent for so long is dead: keep-alives come more often. */
  readonly silenceMs: number
}

export interface StreamRequest<Stored> {
  readonly whence: Whence
  /** Ends with what is stored now. */
  readonly noFollow: boolean
  readonly signal: AbortSignal | undefined
  /** Opens one stream of the server. It fails or ends when the signal is aborted. */
  readonly open: (whence: Whence, signal: AbortSignal) => AsyncIterable<Piece<Stored>>
}

/** A piece, and the first sequence of it that is wanted: a batch may begin before it. */
export type Resumed<Stored> = Piece<Stored> & { readonly fromSequence: number }

/** Full jitter over a second at first: when a server restarts, its followers come back one by one and not all at once. */
const retry: RetryPolicy = { attemptsMax: Number.POSITIVE_INFINITY, baseMs: 1_000, capMs: 15_000 }

export const createResumingStream = (deps: StreamDeps, options: StreamOptions) =>
  async function* follow<Stored>(request: StreamRequest<Stored>): AsyncGenerator<Resumed<Stored>, void, void> {
    const { clock, random, closed } = deps
    const { signal, noFollow } = request
    const position = createPosition(request.whence)
    let hasAnswered = false
    let heardAt = clock.monotonic()
    for (let failures = 1; ; failures++) {
      const linked = linkSignals(closed, signal)
      let cut: Fault = new Unreachable(deps.address, 'the stream ended before the job did')
      try {
        for await (const piece of listen(deps, options, linked, request.open(position.whence(), linked.signal))) {
          const fromSequence = position.take(piece)
          if (fromSequence !== undefined) yield { ...piece, fromSequence }
          if ('marker' in piece && piece.marker.kind === 'jobEnded') return
          failures = 0
          hasAnswered = true
          // After the reader has looked at it: its time is not the server's.
          heardAt = clock.monotonic()
        }
        if (noFollow) return
      } catch (error) {
        cut = isFault(error) ? error : faultOf(error, deps)
      } finally {
        // The library's streams cannot be closed from this side in any other way.
        linked.abort()
        linked.release()
      }
      if (signal?.aborted) return
      if (closed.aborted) throw new ClientClosed({ cause: cut })
      if (!mayPass(cut, hasAnswered)) throw cut
      const delayMs = pauseAfter(retry, cut, Math.max(1, failures), random.next()) ?? 0
      const patienceMs = hasAnswered ? options.patienceMs : options.deadlineMs
      if (clock.monotonic() + delayMs - heardAt > patienceMs) throw cut
      await pause(clock, delayMs, closed, signal)
    }
  }

/** What once was a server of ours is one still: if it seems to be none, it is starting or stopping, or a proxy answers for it. */
const mayPass = (cut: Fault, hasAnswered: boolean): boolean =>
  cut.retry === 'later' || (hasAnswered && cut.code === 'SERVER_FOREIGN')

/** One connection's worth. The next piece is asked for while the last one is being looked at. */
async function* listen<Stored>(
  { clock, address }: StreamDeps,
  { silenceMs }: StreamOptions,
  linked: LinkedSignal,
  pieces: AsyncIterable<Piece<Stored>>,
): AsyncGenerator<Piece<Stored>, void, void> {
  const iterator = pieces[Symbol.asyncIterator]()
  let silence: Fault | undefined
  const watchdog = createWatchdog(clock, silenceMs, () => {
    silence = new Unreachable(address, `the stream was silent for ${silenceMs} ms`)
    linked.abort()
  })
  try {
    for (let coming = ahead(iterator); ; ) {
      watchdog.waiting()
      const result = await coming
      watchdog.heard()
      if (result.done) return
      coming = ahead(iterator)
      yield result.value
    }
  } catch (error) {
    throw silence ?? error
  } finally {
    watchdog.stop()
  }
}

/** Its failure is looked at when its turn comes; until then it is nobody's unhandled one. */
const ahead = <Value>(iterator: AsyncIterator<Value>): Promise<IteratorResult<Value>> => {
  const coming = iterator.next()
  coming.catch(() => {})
  return coming
}
