import { assign, setup } from 'xstate'

export interface SweeperInput {
  /** The pause between two sweeps, drawn anew by the driver for each one. */
  readonly pauseMs: number
}

/** Sweeps, rests, sweeps again, until it is told to stop; a sweep under way is finished first. */
export const sweeper = setup({
  types: {
    input: {} as SweeperInput,
    context: {} as { pauseMs: number },
    events: {} as { type: 'swept'; pauseMs: number } | { type: 'sweepNow' } | { type: 'stop' },
    tags: {} as 'sweeping' | 'stopped',
  },
  actions: {
    drawPause: assign({ pauseMs: ({ context, event }) => (event.type === 'swept' ? event.pauseMs : context.pauseMs) }),
  },
  delays: { pause: ({ context }) => context.pauseMs },
}).createMachine({
  id: 'sweeper',
  context: ({ input }) => ({ pauseMs: input.pauseMs }),
  initial: 'resting',
  states: {
    resting: {
      after: { pause: 'sweeping' },
      on: { sweepNow: 'sweeping', stop: 'stopped' },
    },
    sweeping: {
      tags: 'sweeping',
      on: { swept: { target: 'resting', actions: 'drawPause' }, stop: 'finishing' },
    },
    finishing: {
      tags: 'sweeping',
      on: { swept: 'stopped' },
    },
    stopped: { type: 'final', tags: 'stopped' },
  },
})
