import { setup } from 'xstate'

export interface WorkerInput {
  /** How long running jobs may go on when the worker is to stop, before they are told to. */
  readonly drainGraceMs: number
}

export type WorkerEvent =
  /** Every slot is taken. */
  | { readonly type: 'filled' }
  | { readonly type: 'freed' }
  /** Drain. Said a second time it means: now. */
  | { readonly type: 'stop' }
  | { readonly type: 'stopNow' }
  /** Nothing runs and nothing is left to settle. The driver says it only when it was asked to stop. */
  | { readonly type: 'idle' }

/** Whether a worker takes jobs, and what becomes of those it has when it is to stop. */
export const worker = setup({
  types: {
    input: {} as WorkerInput,
    context: {} as { readonly drainGraceMs: number },
    events: {} as WorkerEvent,
    tags: {} as 'claiming' | 'taking' | 'signalling' | 'halting',
  },
  delays: { drainGrace: ({ context }) => context.drainGraceMs },
}).createMachine({
  id: 'worker',
  context: ({ input }) => ({ drainGraceMs: input.drainGraceMs }),
  initial: 'polling',
  states: {
    polling: {
      tags: ['claiming', 'taking'],
      on: { filled: 'saturated', stop: 'draining', stopNow: 'halting' },
    },
    /** It would claim if it had a slot. */
    saturated: {
      tags: 'taking',
      on: { freed: 'polling', stop: 'draining', stopNow: 'halting' },
    },
    /** It claims nothing more; what runs may end by itself. */
    draining: {
      after: { drainGrace: 'signalling' },
      on: { idle: 'stopped', stop: 'halting', stopNow: 'halting' },
    },
    /** What still runs was told to stop, and goes back to its queue. */
    signalling: {
      tags: 'signalling',
      on: { idle: 'stopped', stop: 'halting', stopNow: 'halting' },
    },
    /** What still runs was killed. */
    halting: {
      tags: 'halting',
      on: { idle: 'stopped' },
    },
    stopped: { type: 'final' },
  },
})
