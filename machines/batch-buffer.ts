import { assign, setup } from 'xstate'
import type { Retry } from '../src/kernel/fault.ts'
import type { RetryPolicy } from '../src/kernel/retry.ts'

// The one batcher: when a batch is flushed, what follows its outcome, and when it is over for good.
// Its driver (src/batch/batcher.ts) holds the items, counts them, and obeys three sentences:
// a flight starts if and only if `flight` rose; `due` means seal what is open; `stuck` means ask the owner.
//
// I1  One flight at a time: `flight` rises only where nothing is in flight.
// I2  The age runs only in `collecting`; the age of what opened during a flight is known when the flight ends.
// I3  A batch leaves only by `acknowledged`, `discard` or `revoke`.
// I4  A buffer that drains closes only when nothing is left in it.

/** Why a batch was sealed. */
export type Trigger = 'count' | 'bytes' | 'age' | 'barrier' | 'asked' | 'drain'

export interface BufferLimits {
  /** The longest that the oldest item waits for company while nothing is in flight. */
  readonly ageMs: number
  readonly retry: RetryPolicy
}

/** What is still held when a flight has ended. */
export interface Remainder {
  readonly at: number
  /** The trigger of the sealed batch that is next, if one waits. */
  readonly waiting: Trigger | undefined
  /** When the first item of the open batch came, if there is one. */
  readonly since?: number | undefined
}

export type BufferEvent =
  | { readonly type: 'opened'; readonly at: number }
  | { readonly type: 'sealed'; readonly trigger: Trigger }
  | ({ readonly type: 'acknowledged' } & Remainder)
  /** `jitter` is a draw from [0, 1). */
  | { readonly type: 'failed'; readonly retry: Retry; readonly jitter: number }
  | { readonly type: 'retry' }
  | ({ readonly type: 'discard' } & Remainder)
  | { readonly type: 'drain' }
  | { readonly type: 'revoke' }

export interface BufferContext {
  readonly limits: BufferLimits
  /** The number of the flight that is under way, or was last. */
  readonly flight: number
  /** The trigger of the batch that is in flight, or was last. */
  readonly trigger: Trigger | undefined
  /** Failures in a row of the batch in flight. */
  readonly failures: number
  /** How long the timer of the present state runs: the rest of the age, or the back-off. */
  readonly waitMs: number
  readonly draining: boolean
}

/** Where a buffer goes when a batch has left it and no sealed one is next. */
const noneSealed = [
  { guard: 'openAndDue', target: 'ripe' },
  { guard: 'open', target: 'collecting', actions: 'resumeAge' },
  { guard: 'draining', target: 'closed' },
  { target: 'empty' },
] as const

/** Where a buffer goes when its owner gave up on a batch. */
const afterDiscard = [{ guard: 'anotherSealed', target: 'flushing', actions: 'takeOff' }, ...noneSealed] as const

/** One buffer of items that are flushed in batches. */
export const batchBuffer = setup({
  types: {
    input: {} as BufferLimits,
    context: {} as BufferContext,
    events: {} as BufferEvent,
    tags: {} as 'due' | 'failing' | 'stuck',
  },
  actions: {
    startAge: assign({ waitMs: ({ context }) => context.limits.ageMs }),
    resumeAge: assign({ waitMs: ({ context, event }) => context.limits.ageMs - ageOfOpen(event) }),
    takeOff: assign(({ context, event }) => ({
      flight: context.flight + 1,
      trigger: triggerOf(event),
      failures: 0,
    })),
    takeOffAgain: assign({ flight: ({ context }) => context.flight + 1 }),
    startAfresh: assign({ failures: 0 }),
    countFailure: assign(({ context, event }) => ({
      failures: context.failures + 1,
      waitMs: backOffMs(context.limits.retry, context.failures + 1, event),
    })),
    startDraining: assign({ draining: true }),
  },
  guards: {
    anotherSealed: ({ event }) => 'waiting' in event && event.waiting !== undefined,
    open: ({ event }) => 'since' in event && event.since !== undefined,
    openAndDue: ({ context, event }) =>
      'since' in event && event.since !== undefined && (context.draining || ageOfOpen(event) >= context.limits.ageMs),
    draining: ({ context }) => context.draining,
    patient: ({ context }) => context.limits.ageMs > 0,
    mayRetry: ({ context, event }) =>
      event.type === 'failed' && event.retry === 'later' && context.failures + 1 < context.limits.retry.attemptsMax,
  },
  delays: {
    age: ({ context }) => context.waitMs,
    backOff: ({ context }) => context.waitMs,
  },
}).createMachine({
  id: 'batchBuffer',
  context: ({ input }) => ({
    limits: input,
    flight: 0,
    trigger: undefined,
    failures: 0,
    waitMs: 0,
    draining: false,
  }),
  initial: 'empty',
  states: {
    /** Nothing is held, or what is held was not announced yet. */
    empty: {
      on: {
        opened: [{ guard: 'patient', target: 'collecting', actions: 'startAge' }, { target: 'ripe' }],
        sealed: { target: 'flushing', actions: 'takeOff' },
        drain: 'closed',
        revoke: 'revoked',
      },
    },
    /** A batch is open, nothing is in flight, and the age runs. */
    collecting: {
      after: { age: 'ripe' },
      on: {
        sealed: { target: 'flushing', actions: 'takeOff' },
        drain: { target: 'ripe', actions: 'startDraining' },
        revoke: 'revoked',
      },
    },
    /** The open batch must be sealed now. */
    ripe: {
      tags: 'due',
      on: {
        sealed: { target: 'flushing', actions: 'takeOff' },
        drain: { actions: 'startDraining' },
        revoke: 'revoked',
      },
    },
    /** A flush is under way. Items go on collecting, and batches are sealed without a word to the machine. */
    flushing: {
      on: {
        // The first line is the hot path: without a target, a saturated buffer pays for one context change per batch.
        acknowledged: [{ guard: 'anotherSealed', actions: 'takeOff' }, ...noneSealed],
        failed: [
          { guard: 'mayRetry', target: 'backingOff', actions: 'countFailure' },
          { target: 'stuck', actions: 'countFailure' },
        ],
        drain: { actions: 'startDraining' },
        revoke: 'revoked',
      },
    },
    /** The flush failed and may succeed later. The batch stays where it is, first in line. */
    backingOff: {
      tags: 'failing',
      after: { backOff: { target: 'flushing', actions: 'takeOffAgain' } },
      on: {
        retry: { target: 'flushing', actions: 'takeOffAgain' },
        discard: afterDiscard,
        drain: { actions: 'startDraining' },
        revoke: 'revoked',
      },
    },
    /** Refused, or tried too often: only the owner knows what to do. */
    stuck: {
      tags: ['failing', 'stuck'],
      on: {
        retry: { target: 'flushing', actions: ['startAfresh', 'takeOffAgain'] },
        discard: afterDiscard,
        drain: { actions: 'startDraining' },
        revoke: 'revoked',
      },
    },
    /** Drained: everything was acknowledged or discarded. */
    closed: { type: 'final' },
    /** Abandoned: what was held belongs to the owner again. */
    revoked: { type: 'final' },
  },
})

const triggerOf = (event: BufferEvent): Trigger | undefined => {
  if ('trigger' in event) return event.trigger
  return 'waiting' in event ? event.waiting : undefined
}

const ageOfOpen = (event: BufferEvent): number =>
  'since' in event && event.since !== undefined ? event.at - event.since : 0

/** Full jitter below a ceiling that doubles with each failure in a row; the sum of src/kernel/retry.ts. */
const backOffMs = (retry: RetryPolicy, failures: number, event: BufferEvent): number => {
  const ceilingMs = Math.min(retry.capMs, retry.baseMs * 2 ** Math.min(failures - 1, 52))
  return event.type === 'failed' ? Math.floor(event.jitter * ceilingMs) : 0
}
