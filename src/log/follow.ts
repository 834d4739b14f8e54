import { follow as followMachine } from '../../machines/follow.ts'
import { type Clock, sleep } from '../kernel/clock.ts'
import { type Fault, isFault } from '../kernel/fault.ts'
import { ceilingAfter } from '../kernel/retry.ts'
import { createRoot } from '../kernel/start.ts'
import type { Tables } from '../tables/port.ts'
import type { Emit } from '../telemetry/events.ts'
import { createCursor, type LogEnd } from './cursor.ts'
import { FollowInvalid } from './faults.ts'
import type { Entry, Follower, FollowRequest } from './follower.ts'
import { isEnded, isUnknown, type JobStatus, unknownJob } from './job-status.ts'
import { logId } from './keys.ts'
import { createReplay, type Replay } from './replay.ts'
import type { Look, Tail, Tails } from './tail.ts'
import { createWatching } from './watching.ts'

// Following: a job's attempts one after the other, each read by a cursor, until the job has ended. Pulled by its reader, so a
// slow one falls behind by itself and holds nothing but its place.

export interface FollowDeps {
  readonly tables: Pick<Tables, 'query'>
  readonly clock: Clock
  readonly emit: Emit
  readonly tails: Tails
  /** The job as its row is now, strongly read; undefined if there is none. */
  look(jobId: string): Promise<JobStatus | undefined>
  /** What a stream of a job that is not there ends in. */
  unknown(jobId: string): Fault
  /** Marks the job as watched for a while. */
  watch(jobId: string): Promise<unknown>
  /** Tells what somebody in this process did to the job. */
  listen(jobId: string, listener: (notice: { readonly changed?: true }) => void): () => void
}

const keepAliveMs = 15_000
const patience = { attemptsMax: 8, baseMs: 100, capMs: 5_000 }

export const createFollower = (deps: FollowDeps): Follower => {
  const replay = createReplay(deps)
  const watching = createWatching(deps)
  return {
    follow: (request) => {
      check(request)
      return followJob(deps, { replay, watching }, request)
    },
  }
}

async function* followJob(
  deps: FollowDeps,
  { replay, watching }: { readonly replay: Replay; readonly watching: ReturnType<typeof createWatching> },
  request: FollowRequest,
): AsyncGenerator<Entry, void, void> {
  const { clock } = deps
  const { jobId, signal } = request
  const look = async (): Promise<JobStatus> => (await deps.look(jobId)) ?? unknownJob
  const isCancelled = (): boolean => signal?.aborted === true
  const first = await patiently(deps, signal, look)
  if (isUnknown(first)) throw deps.unknown(jobId)

  let attempt = request.attempt ?? Math.max(1, first.attempt)
  const actor = createRoot(followMachine, { clock, input: { attempt, sequence: 0 } }).start()
  const isLive = request.noFollow !== true && !isEnded(first)
  const unwatch = isLive ? watching.begin(jobId) : () => {}
  let quietSince = clock.monotonic()
  let tail: Tail | undefined
  // One for the whole stream, whichever attempt it has come to.
  const unlisten = deps.listen(jobId, ({ changed }) => {
    if (changed) void tail?.look()
  })

  /** Waits for news and gives a sign of life when there was none for too long; false if there is to be no waiting. */
  async function* wait(on: Tail, seen: number, isRestless: boolean): AsyncGenerator<Entry, boolean, void> {
    for (;;) {
      if (request.noFollow === true || isCancelled()) return false
      const ms = Math.max(0, quietSince + keepAliveMs - clock.monotonic())
      if (!(await isSilent(clock, on, { seen, isRestless, ms, signal }))) return !isCancelled()
      quietSince = clock.monotonic()
      yield { attempt, marker: { kind: 'keepAlive' } }
    }
  }

  /** Until the attempt is there; undefined if the job ended without it, or if there is to be no waiting. */
  async function* seek(on: Tail): AsyncGenerator<Entry, JobStatus | undefined, void> {
    for (;;) {
      const seen = on.version()
      const status = on.status() ?? first
      if (isUnknown(status)) throw deps.unknown(jobId)
      if (status.attempt >= attempt) return status
      if (isEnded(status)) {
        actor.send({ type: 'jobEnded' })
        const { state, result, error } = status
        yield { attempt: status.attempt, marker: { kind: 'jobEnded', state, result, error } }
        return undefined
      }
      if (!(yield* wait(on, seen, false))) return undefined
      // Woken by items of the attempt: they came before the word of its claim, and a busy log leaves no pause to look in.
      if (on.status() === status) await on.look()
    }
  }

  async function* readAttempt(on: Tail, bound: number, from: number): AsyncGenerator<Entry, LogEnd | undefined, void> {
    const log = logId(jobId, attempt)
    const cursor = createCursor({
      clock,
      replay,
      tail: on,
      log,
      attempt,
      bound,
      fromSequence: from,
      isCancelled,
      damaged: ({ sequence }, reason) =>
        deps.emit({
          name: 'warning',
          text: `item ${sequence} of log ${log} is damaged: ${reason}`,
          code: 'LOG_DAMAGED',
        }),
    })
    let failures = 0
    actor.send({ type: 'found', attempt, sequence: cursor.sequence() })
    for (;;) {
      const before = cursor.sequence()
      try {
        const outcome = yield* told(cursor.read())
        if (typeof outcome === 'object') return outcome
        const place = { attempt, sequence: cursor.sequence() }
        actor.send(outcome === 'gap' ? { type: 'gapMet', ...place } : { type: 'caughtUp', ...place })
        if (!(yield* wait(on, cursor.seen(), outcome === 'gap'))) return undefined
        actor.send({ type: 'woken' })
      } catch (cause) {
        failures = cursor.sequence() > before ? 1 : failures + 1
        if (!mayPass(cause) || failures >= patience.attemptsMax) throw cause
        await sleep(clock, ceilingAfter(patience, failures), signal)
      }
    }
  }

  /** Hands on, and notes that something was said. */
  async function* told<T>(entries: AsyncGenerator<Entry, T, void>): AsyncGenerator<Entry, T, void> {
    for (;;) {
      const next = await entries.next()
      if (next.done) return next.value
      yield next.value
      quietSince = clock.monotonic()
    }
  }

  try {
    for (let isFirst = true; !isCancelled(); isFirst = false) {
      tail = deps.tails.join(logId(jobId, attempt), lookBehind(replay, look, logId(jobId, attempt)))
      // What others here know already may be newer than what was read before joining them, or older.
      if (isFirst && tail.status() === undefined) tail.learn(first)
      else await tail.look()
      const status = yield* seek(tail)
      if (status === undefined) return
      const bound = status.batchSizeBound
      const from = isFirst ? await patiently(deps, signal, () => beginning(replay, request, attempt, bound)) : 1
      const end = yield* readAttempt(tail, bound, from)
      if (end === undefined) return
      actor.send({ type: 'attemptEnded', attempt, sequence: end.lastSequence })
      yield { attempt, marker: { kind: 'attemptEnded', ...end } }
      tail.leave()
      attempt += 1
    }
  } catch (cause) {
    actor.send({ type: 'failed' })
    throw cause
  } finally {
    actor.send({ type: 'leave' })
    actor.stop()
    tail?.leave()
    unlisten()
    unwatch()
  }
}

/** What a tail finds when it looks by itself: the job first, then its log, so that the end of an attempt brings its last items. */
const lookBehind =
  (replay: Replay, look: () => Promise<JobStatus>, log: string) =>
  async (after: number | undefined): Promise<Look> => {
    const status = await look()
    if (after === undefined) {
      const last = await replay.last(log, status.batchSizeBound)
      const items = last !== undefined && 'item' in last.content ? [last.content.item] : []
      return { status, items, end: last?.endSequence ?? 0 }
    }
    const items = []
    let end = after
    for await (const page of replay.pages(log, after + 1, status.batchSizeBound)) {
      for (const { sequence, endSequence, content } of page) {
        if (sequence !== end + 1) return { status, items, end }
        end = endSequence
        if ('item' in content) items.push(content.item)
      }
      // One page is enough at a time: those who wait read on by themselves.
      break
    }
    return { status, items, end }
  }

const beginning = async (
  replay: Replay,
  { fromSequence = 1, fromTimestamp, jobId }: FollowRequest,
  attempt: number,
  bound: number,
): Promise<number> => {
  if (fromTimestamp === undefined) return fromSequence
  return Math.max(fromSequence, await replay.sequenceAt(logId(jobId, attempt), fromTimestamp, bound))
}

/** Whether nothing happened for that long. False when woken, and when the stream is to end. */
const isSilent = (
  clock: Clock,
  tail: Tail,
  how: {
    readonly seen: number
    readonly isRestless: boolean
    readonly ms: number
    readonly signal?: AbortSignal | undefined
  },
): Promise<boolean> =>
  new Promise((resolve) => {
    const done = (isSilent: boolean) => {
      clock.clearTimeout(timer)
      cancel()
      how.signal?.removeEventListener('abort', wake)
      resolve(isSilent)
    }
    const wake = () => done(false)
    const timer = clock.setTimeout(() => done(true), how.ms)
    const cancel = tail.wait(how.seen, wake, how.isRestless)
    how.signal?.addEventListener('abort', wake, { once: true })
  })

const mayPass = (cause: unknown): boolean => isFault(cause) && cause.retry === 'later'

/** A read that may succeed later is tried again, a few times. */
const patiently = async <T>(
  deps: { readonly clock: Clock },
  signal: AbortSignal | undefined,
  read: () => Promise<T>,
): Promise<T> => {
  for (let failures = 1; ; failures++) {
    try {
      return await read()
    } catch (cause) {
      if (!mayPass(cause) || failures >= patience.attemptsMax || signal?.aborted) throw cause
      await sleep(deps.clock, ceilingAfter(patience, failures), signal)
    }
  }
}

const check = ({ attempt, fromSequence = 0, fromTimestamp = 0 }: FollowRequest): void => {
  if (!Number.isSafeInteger(fromSequence) || fromSequence < 0) {
    throw new FollowInvalid('fromSequence', `is ${fromSequence} and must be a whole number from 0`)
  }
  if (attempt !== undefined && !(Number.isSafeInteger(attempt) && attempt >= 1)) {
    throw new FollowInvalid('attempt', `is ${attempt} and must be a whole number from 1`)
  }
  if (!Number.isFinite(fromTimestamp))
    throw new FollowInvalid('fromTimestamp', `is ${fromTimestamp} and must be a time`)
}
