import { setup } from 'xstate'

export interface ServerInput {
  /** Longest the calls under way may take to end by themselves. */
  readonly drainMs: number
  /** Longest connections may take to say goodbye. */
  readonly farewellMs: number
}

/** Serves; then lets what is under way end and refuses the rest; then closes, by force where it must. */
export const server = setup({
  types: {
    input: {} as ServerInput,
    context: {} as ServerInput,
    events: {} as
      | { type: 'stop' }
      /** The last call has ended. */
      | { type: 'idle' }
      /** The last connection is gone, and nobody listens any more. */
      | { type: 'released' },
    tags: {} as 'refusing' | 'closing' | 'cutting',
  },
  delays: {
    drain: ({ context }) => context.drainMs,
    farewell: ({ context }) => context.farewellMs,
  },
}).createMachine({
  id: 'server',
  context: ({ input }) => input,
  initial: 'listening',
  states: {
    listening: { on: { stop: 'draining' } },
    // Still listening: whoever calls now is told that we are about to go, instead of meeting a closed door.
    draining: { tags: 'refusing', after: { drain: 'closing' }, on: { idle: 'closing' } },
    closing: { tags: ['refusing', 'closing'], after: { farewell: 'cutting' }, on: { released: 'closed' } },
    cutting: { tags: ['refusing', 'closing', 'cutting'], on: { released: 'closed' } },
    closed: { type: 'final', tags: 'refusing' },
  },
})
