import { assign, setup } from 'xstate'

// What a follower's cursor is doing. It decides nothing about items: they go by without a word. The driver is
// src/log/follow.ts; whoever looks at the running system sees who reads, who waits, and who stands before a gap.

/** Where a cursor stands: the attempt, and the last sequence that was handed on. */
export interface CursorPlace {
  readonly attempt: number
  readonly sequence: number
}

export type FollowEvent =
  /** The attempt that was waited for is there. */
  | ({ readonly type: 'found' } & CursorPlace)
  /** Everything that is stored was handed on. */
  | ({ readonly type: 'caughtUp' } & CursorPlace)
  /** Something is stored, but not what comes next. */
  | ({ readonly type: 'gapMet' } & CursorPlace)
  /** There is something to look at. */
  | { readonly type: 'woken' }
  /** The attempt has ended; another may follow. */
  | ({ readonly type: 'attemptEnded' } & CursorPlace)
  | { readonly type: 'jobEnded' }
  /** Whoever follows has had enough. */
  | { readonly type: 'leave' }
  | { readonly type: 'failed' }

/** The lines that hold wherever a cursor is. */
const anywhere = { leave: 'left', failed: 'lost' } as const

/** One follower of a job. */
export const follow = setup({
  types: {
    input: {} as CursorPlace,
    context: {} as CursorPlace,
    events: {} as FollowEvent,
    tags: {} as 'idle' | 'over',
  },
  actions: {
    moveTo: assign(({ context, event }) =>
      'sequence' in event ? { attempt: event.attempt, sequence: event.sequence } : context,
    ),
  },
}).createMachine({
  id: 'follow',
  context: ({ input }) => ({ attempt: input.attempt, sequence: input.sequence }),
  initial: 'seeking',
  states: {
    /** Waits for its attempt to begin, or for the job to end. */
    seeking: {
      tags: 'idle',
      on: { found: { target: 'reading', actions: 'moveTo' }, jobEnded: 'ended', ...anywhere },
    },
    /** Hands on what is stored. */
    reading: {
      on: {
        caughtUp: { target: 'waiting', actions: 'moveTo' },
        gapMet: { target: 'halted', actions: 'moveTo' },
        attemptEnded: { target: 'seeking', actions: 'moveTo' },
        ...anywhere,
      },
    },
    /** Has everything, and is told when there is more. */
    waiting: { tags: 'idle', on: { woken: 'reading', ...anywhere } },
    /** Stands before a gap, which it passes only when the attempt has ended. */
    halted: { tags: 'idle', on: { woken: 'reading', ...anywhere } },
    /** The job has ended, and everything of it was handed on. */
    ended: { type: 'final', tags: 'over' },
    left: { type: 'final', tags: 'over' },
    lost: { type: 'final', tags: 'over' },
  },
})
