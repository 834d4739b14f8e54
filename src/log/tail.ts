import type { Clock, Timer } from '../kernel/clock.ts'
import { isFault } from '../kernel/fault.ts'
import type { Emit } from '../telemetry/events.ts'
import type { StoredItem } from './event.ts'
import type { JobStatus } from './job-status.ts'
import { createRing } from './ring.ts'

// Tails: one per log and process, shared by everybody who follows it here. A tail keeps the newest items and wakes those who
// wait. What a writer of this process stored is offered to it; for writers elsewhere it looks itself, once for all who wait.
//
// T1  Only stored items get in, so whatever a tail shows is durable.
// T2  A tail slows nobody down: what does not fit is forgotten, and whoever still needs it reads the store.
// T3  A wake-up is never lost: whoever waits says which version it has seen, and an older one is answered at once.

/** What a look at the store found. */
export interface Look {
  readonly status: JobStatus
  /** Items behind the position, without a gap from it on. Without a position, the last of the log. */
  readonly items: readonly StoredItem[]
  /** How far what is stored reaches without a gap, also where it cannot be read. */
  readonly end: number
}

export interface Tail {
  /** The item that contains the sequence, if it is among the newest. */
  find(sequence: number): StoredItem | undefined
  /** Whether nothing beyond this sequence is known here; then waiting is enough. */
  isAtEnd(sequence: number): boolean
  /** Somebody has read up to here: looks begin behind it. */
  reached(sequence: number): void
  /** Rises with everything that is worth a look. */
  version(): number
  status(): JobStatus | undefined
  /** What somebody found out by itself. */
  learn(status: JobStatus): void
  /** Resolves when a look has ended that began after this call; those who ask together get the same one. */
  look(): Promise<void>
  /**
   * Calls back once the version is another one than the one seen. The answer takes it back. Whoever is restless is woken by every
   * look, because what it waits for stands before what is known here.
   */
  wait(seen: number, wake: () => void, isRestless: boolean): () => void
  leave(): void
}

export interface Tails {
  /** Items that this process stored, once they are durable. Nobody has to follow the log for it. */
  offer(log: string, items: readonly StoredItem[]): void
  /** Something about the log may have changed. */
  wake(log: string): void
  /** Each follower joins and leaves. `look` of the first one is used for all. */
  join(log: string, look: (after: number | undefined) => Promise<Look>): Tail
  /** How many logs have a tail. */
  size(): number
}

export interface TailOptions {
  /** What a log's newest items may take in memory. */
  readonly ringBytes: number
  /** The first pause between two looks, and the longest. */
  readonly pollMs: number
  readonly pollMsMax: number
}

export const defaultTailOptions: TailOptions = { ringBytes: 2 * 1_024 * 1_024, pollMs: 200, pollMsMax: 2_000 }

export const createTails = (
  deps: { readonly clock: Clock; readonly emit: Emit },
  options: TailOptions = defaultTailOptions,
): Tails => {
  const tails = new Map<string, Shared>()
  return {
    offer: (log, items) => tails.get(log)?.offer(items),
    wake: (log) => void tails.get(log)?.tail.look(),
    join: (log, look) => {
      const shared = tails.get(log) ?? createShared(deps, options, look)
      tails.set(log, shared)
      shared.followers += 1
      let hasLeft = false
      const leave = () => {
        if (hasLeft) return
        hasLeft = true
        shared.followers -= 1
        if (shared.followers > 0) return
        shared.stop()
        if (tails.get(log) === shared) tails.delete(log)
      }
      return { ...shared.tail, leave }
    },
    size: () => tails.size,
  }
}

interface Shared {
  readonly tail: Omit<Tail, 'leave'>
  followers: number
  offer(items: readonly StoredItem[]): void
  stop(): void
}

const createShared = (
  { clock, emit }: { readonly clock: Clock; readonly emit: Emit },
  { ringBytes, pollMs, pollMsMax }: TailOptions,
  look: (after: number | undefined) => Promise<Look>,
): Shared => {
  const ring = createRing(ringBytes)
  const waiting = new Set<() => void>()
  const restless = new Set<() => void>()
  let version = 0
  let status: JobStatus | undefined
  let position: number | undefined
  let pauseMs = pollMs
  let timer: { readonly set: Timer } | undefined
  let looking: Promise<void> | undefined
  let next: Promise<void> | undefined
  let stopped = false

  const wakeAll = (): void => {
    version += 1
    rest()
    const woken = [...waiting, ...restless]
    waiting.clear()
    restless.clear()
    for (const wake of woken) wake()
  }

  const put = (items: readonly StoredItem[], end = 0): boolean => {
    ring.put(items)
    const reached = Math.max(position ?? 0, ring.end() ?? 0, end)
    const isNews = reached > (position ?? 0)
    position = reached
    return isNews
  }

  const learn = (fresh: JobStatus): boolean => {
    const isNews = fresh.state !== status?.state || fresh.attempt !== status.attempt
    status = fresh
    return isNews
  }

  /** Nobody waits, so nobody needs to look. */
  const rest = (): void => {
    if (timer !== undefined) clock.clearTimeout(timer.set)
    timer = undefined
  }

  const schedule = (): void => {
    if (stopped || timer !== undefined || looking !== undefined || waiting.size + restless.size === 0) return
    timer = {
      set: clock.setTimeout(() => {
        timer = undefined
        void lookNow()
      }, pauseMs),
    }
  }

  const lookNow = (): Promise<void> => {
    if (looking !== undefined) {
      // What it found so far may be older than the question.
      next ??= looking.then(() => {
        next = undefined
        return lookNow()
      })
      return next
    }
    looking = lookOnce().finally(() => {
      looking = undefined
      schedule()
    })
    return looking
  }

  const lookOnce = async (): Promise<void> => {
    rest()
    try {
      const found = await look(position)
      // Both are done before anybody is told.
      const isNews = [put(found.items, found.end), learn(found.status)].includes(true)
      pauseMs = isNews ? pollMs : Math.min(pollMsMax, pauseMs * 1.5)
      if (isNews || restless.size > 0) wakeAll()
    } catch (cause) {
      // The store is out of reach for now, and those who wait go on waiting.
      pauseMs = pollMsMax
      const code = isFault(cause) ? { code: cause.code } : {}
      emit({ name: 'warning', text: 'a look at a log that is followed failed', ...code })
    }
  }

  return {
    followers: 0,
    offer: (items) => {
      put(items)
      // The writer is here and tells by itself; looking is for the rare case.
      pauseMs = pollMsMax
      wakeAll()
    },
    stop: () => {
      stopped = true
      rest()
    },
    tail: {
      find: ring.find,
      isAtEnd: (sequence) => position === sequence,
      reached: (sequence) => {
        if (position === undefined || sequence > position) position = sequence
      },
      version: () => version,
      status: () => status,
      learn: (fresh) => {
        if (learn(fresh)) wakeAll()
      },
      look: lookNow,
      wait: (seen, wake, isRestless) => {
        if (seen !== version) {
          queueMicrotask(wake)
          return () => {}
        }
        const among = isRestless ? restless : waiting
        among.add(wake)
        schedule()
        return () => {
          among.delete(wake)
          if (waiting.size + restless.size === 0) rest()
        }
      },
    },
  }
}
