import { assign, setup } from 'xstate'
import { type AttemptContext, type AttemptLimits, beatAgainAt, fadesAt, isLost, killByLease } from './attempt-times.ts'

// One attempt that runs a command, or a handler that takes its time: when to say that it is alive, when to stop the work and
// how hard, when to settle, and when to say nothing because it is lost. Its driver (src/worker/attempt.ts) does the work, has
// one timer for `wakeAt`, and obeys: a heartbeat is sent if and only if `beat` rose; SIGTERM, SIGKILL and the end of the
// pipes follow from the state.
//
// I1  Times are monotonic and arrive in events; a `tick` makes one decision, and the driver ticks again while one is due.
// I2  The lease counts from when the last acknowledged heartbeat was sent, so it never ends later here than for others. Until
//     there is one it counts from the answer to the claim, and a claim whose answer took long is renewed at once.
// I3  The work is dead before the lease ends, or it is killed as soon as this process can act again; then nothing is settled.
// I4  What was seen first stands: an exit before the limit is an exit, a limit before the exit is a limit.
// I5  Once it settles, only the answer to the settling says that the claim is lost: a heartbeat behind it is refused too.

export interface AttemptInput {
  readonly limits: AttemptLimits
  /** When the claim was answered. */
  readonly at: number
  /** When the first heartbeat is due. */
  readonly beatAt: number
}

export type AttemptEvent =
  | { readonly type: 'tick'; readonly at: number }
  /** The work has begun. */
  | { readonly type: 'started'; readonly at: number }
  /** A heartbeat was acknowledged. */
  | { readonly type: 'renewed'; readonly sentAt: number }
  /** A heartbeat was not acknowledged. `chance` is a draw from [0, 1). */
  | { readonly type: 'unheard'; readonly at: number; readonly chance: number }
  | { readonly type: 'cancel'; readonly at: number }
  /** The worker is to stop: go down the ladder. */
  | { readonly type: 'drain'; readonly at: number }
  /** The worker is to stop now. */
  | { readonly type: 'halt'; readonly at: number }
  | { readonly type: 'claimLost'; readonly at: number }
  /** The process has ended; its pipes may still be open, and `flowing` unless we ourselves have stopped reading. */
  | { readonly type: 'exited'; readonly at: number; readonly flowing: boolean }
  | { readonly type: 'held' }
  | { readonly type: 'flowing'; readonly at: number }
  /** Nothing more comes from the work. */
  | { readonly type: 'closed' }
  | { readonly type: 'settled' }
  /** The store would not take the end of the attempt. */
  | { readonly type: 'refused' }

/** How long a process may take to die of SIGKILL. */
const dyingMs = 10_000
/** How long a worker that stops now waits for the store. */
const lastWordMs = 1_000

const atOf = (event: AttemptEvent): number => ('at' in event ? event.at : 0)
const hasPassed = (at: number | undefined, event: AttemptEvent): boolean => at !== undefined && atOf(event) >= at
const beats = [{ guard: 'beatDue', actions: 'countBeat' }] as const
const whenOver = [{ guard: 'lost', target: 'lost' }, { target: 'settling' }] as const
const whenFenced = { target: 'killing', actions: ['becauseClaimLost', 'startDying', 'stopBeats'] } as const
const whenExited = [
  { guard: 'lost', target: 'lost' },
  { target: 'emptying', actions: 'startEmptying' },
] as const

/** One attempt of a job, from the claim to its end. */
export const attempt = setup({
  types: {
    input: {} as AttemptInput,
    context: {} as AttemptContext,
    events: {} as AttemptEvent,
    tags: {} as 'terminating' | 'killing' | 'settling' | 'lost' | 'ended',
  },
  actions: {
    startLimit: assign({
      limitAt: ({ context, event }) =>
        context.limits.timeoutMs === undefined ? undefined : atOf(event) + context.limits.timeoutMs,
    }),
    countBeat: assign(({ context, event }) => ({
      beat: context.beat + 1,
      askedAt: context.askedAt ?? atOf(event),
      beatAt: atOf(event) + context.limits.heartbeatMs,
    })),
    stopBeats: assign({ beatAt: undefined }),
    extendLease: assign(({ context, event }) =>
      event.type === 'renewed'
        ? {
            missed: 0,
            askedAt: undefined,
            leaseEndsAt: Math.max(context.leaseEndsAt, event.sentAt + context.limits.leaseMs),
          }
        : {},
    ),
    beatSooner: assign(({ context, event }) => ({
      missed: context.missed + 1,
      beatAt: event.type === 'unheard' ? beatAgainAt(context, event) : context.beatAt,
    })),
    becauseCancelled: assign({ reason: 'cancelled' }),
    becauseTimeLimit: assign({ reason: 'timeLimit' }),
    becauseLeaseLost: assign({ reason: 'leaseLost' }),
    becauseClaimLost: assign({ reason: 'claimLost' }),
    becauseDrained: assign({ reason: 'drained' }),
    becauseHalted: assign({ reason: 'halted' }),
    startGrace: assign({
      limitAt: undefined,
      killAt: ({ context, event }) => atOf(event) + context.limits.graceMs,
    }),
    startLastGrace: assign({ limitAt: undefined, killAt: ({ context }) => killByLease(context) }),
    startDying: assign({
      limitAt: undefined,
      killAt: undefined,
      giveUpAt: ({ event }) => atOf(event) + dyingMs,
    }),
    startEmptying: assign(({ context, event }) => ({
      limitAt: undefined,
      giveUpAt: undefined,
      // Others of the group got SIGTERM with the leader, and have what is left of its grace.
      cutAt:
        event.type === 'exited' && event.flowing
          ? Math.max(context.killAt ?? 0, event.at + context.limits.outputGraceMs)
          : undefined,
      killAt: undefined,
    })),
    // While it is we who do not read, what the process itself wrote may still be in the pipe.
    holdCut: assign({ cutAt: undefined }),
    restartCut: assign({ cutAt: ({ context, event }) => atOf(event) + context.limits.outputGraceMs }),
    startSettling: assign({ limitAt: undefined, killAt: undefined, cutAt: undefined, giveUpAt: undefined }),
    boundSettling: assign({ giveUpAt: ({ context, event }) => atOf(event) + context.limits.graceMs }),
    hurrySettling: assign({ giveUpAt: ({ event }) => atOf(event) + lastWordMs }),
  },
  guards: {
    lost: ({ context }) => isLost(context.reason),
    notLost: ({ context }) => !isLost(context.reason),
    untold: ({ context }) => context.reason === undefined,
    told: ({ context }) => context.reason !== undefined && context.reason !== 'halted',
    halted: ({ context }) => context.reason === 'halted' || isLost(context.reason),
    beatDue: ({ context, event }) => hasPassed(context.beatAt, event),
    limitPassed: ({ context, event }) => hasPassed(context.limitAt, event),
    gracePassed: ({ context, event }) => hasPassed(context.killAt, event),
    cutDue: ({ context, event }) => hasPassed(context.cutAt, event),
    waitedEnough: ({ context, event }) => hasPassed(context.giveUpAt, event),
    leaseFading: ({ context, event }) => hasPassed(fadesAt(context), event),
    leaseOver: ({ context, event }) => hasPassed(killByLease(context), event) && !isLost(context.reason),
  },
}).createMachine({
  id: 'attempt',
  context: ({ input }) => ({
    limits: input.limits,
    reason: undefined,
    beat: 0,
    missed: 0,
    askedAt: undefined,
    beatAt: input.beatAt,
    leaseEndsAt: input.at + input.limits.leaseMs,
    limitAt: undefined,
    killAt: undefined,
    cutAt: undefined,
    giveUpAt: undefined,
  }),
  initial: 'starting',
  on: {
    renewed: { actions: 'extendLease' },
    unheard: { actions: 'beatSooner' },
  },
  states: {
    /** The work has not begun: what is asked of it meanwhile follows as soon as it has. */
    starting: {
      on: {
        started: [
          { guard: 'halted', target: 'killing', actions: 'startDying' },
          { guard: 'told', target: 'terminating', actions: 'startGrace' },
          { target: 'running', actions: 'startLimit' },
        ],
        closed: whenOver,
        cancel: { guard: 'untold', actions: 'becauseCancelled' },
        drain: { guard: 'untold', actions: 'becauseDrained' },
        halt: { guard: 'notLost', actions: 'becauseHalted' },
        claimLost: { actions: ['becauseClaimLost', 'stopBeats'] },
        tick: [{ guard: 'leaseOver', actions: ['becauseLeaseLost', 'stopBeats'] }, ...beats],
      },
    },
    running: {
      on: {
        tick: [
          { guard: 'leaseOver', target: 'killing', actions: ['becauseLeaseLost', 'startDying', 'stopBeats'] },
          ...beats,
          { guard: 'leaseFading', target: 'terminating', actions: ['becauseLeaseLost', 'startLastGrace', 'stopBeats'] },
          { guard: 'limitPassed', target: 'terminating', actions: ['becauseTimeLimit', 'startGrace'] },
        ],
        cancel: { target: 'terminating', actions: ['becauseCancelled', 'startGrace'] },
        drain: { target: 'terminating', actions: ['becauseDrained', 'startGrace'] },
        halt: { target: 'killing', actions: ['becauseHalted', 'startDying'] },
        // Somebody else may hold the job by now: no grace.
        claimLost: whenFenced,
        exited: whenExited,
        closed: whenOver,
      },
    },
    /** SIGTERM was sent. */
    terminating: {
      tags: 'terminating',
      on: {
        tick: [
          { guard: 'leaseOver', target: 'killing', actions: ['becauseLeaseLost', 'startDying', 'stopBeats'] },
          { guard: 'gracePassed', target: 'killing', actions: 'startDying' },
          ...beats,
        ],
        halt: [
          { guard: 'lost', target: 'killing', actions: 'startDying' },
          { target: 'killing', actions: ['becauseHalted', 'startDying'] },
        ],
        claimLost: whenFenced,
        exited: whenExited,
        closed: whenOver,
      },
    },
    /** SIGKILL was sent. */
    killing: {
      tags: 'killing',
      on: {
        tick: [
          { guard: 'leaseOver', actions: ['becauseLeaseLost', 'stopBeats'] },
          { guard: 'waitedEnough', target: 'abandoned' },
          ...beats,
        ],
        claimLost: { actions: ['becauseClaimLost', 'stopBeats'] },
        exited: whenExited,
        closed: whenOver,
      },
    },
    /** It does not even die of SIGKILL. Nobody can wait for it for ever: the driver says `closed`. */
    abandoned: {
      tags: 'killing',
      on: { closed: whenOver, exited: whenOver },
    },
    /** The process has ended, and somebody it started may still write. How it ended is known and stands. */
    emptying: {
      on: {
        tick: [{ guard: 'leaseOver', target: 'settling' }, { guard: 'cutDue', target: 'settling' }, ...beats],
        held: { actions: 'holdCut' },
        flowing: { actions: 'restartCut' },
        halt: { target: 'settling' },
        claimLost: { target: 'lost', actions: 'becauseClaimLost' },
        closed: 'settling',
      },
    },
    /** Nothing of it runs any more; the end of the log and the outcome are on their way to the store. */
    settling: {
      tags: 'settling',
      entry: 'startSettling',
      on: {
        tick: [{ guard: 'waitedEnough', target: 'lost' }, ...beats],
        drain: { actions: 'boundSettling' },
        halt: { actions: 'hurrySettling' },
        settled: 'settled',
        refused: 'lost',
      },
    },
    settled: { type: 'final', tags: 'ended' },
    /** Nothing was settled: the store gives the job to somebody else in its own time. */
    lost: { type: 'final', tags: ['lost', 'ended'] },
  },
})
