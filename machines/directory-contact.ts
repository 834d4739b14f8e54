import { setup } from 'xstate'

export interface DirectoryContactInput {
  /** How long a holder that does not answer is waited for: it may be starting, or ending. */
  readonly patienceMs: number
  /** The pause between two looks. */
  readonly pauseMs: number
}

type Event =
  | { type: 'opened' }
  /** Another process has the directory. */
  | { type: 'held' }
  | { type: 'answered' }
  /** Nobody listens on the socket; `waitedMs` since we began to look for somebody. */
  | { type: 'silent'; waitedMs: number }
  /** The holder that had answered is gone. */
  | { type: 'vanished' }
  | { type: 'leave' }

/** How a process comes to work with a data directory: it takes it, or asks whoever has it; and begins anew if that one vanishes. */
export const directoryContact = setup({
  types: {
    input: {} as DirectoryContactInput,
    context: {} as DirectoryContactInput,
    events: {} as Event,
    tags: {} as 'opening' | 'connecting' | 'settled',
  },
  guards: {
    outOfPatience: ({ context, event }) => event.type === 'silent' && event.waitedMs >= context.patienceMs,
  },
  delays: { pause: ({ context }) => context.pauseMs },
}).createMachine({
  id: 'directoryContact',
  context: ({ input }) => input,
  initial: 'opening',
  states: {
    opening: { tags: 'opening', on: { opened: 'holding', held: 'connecting' } },
    connecting: {
      tags: 'connecting',
      on: { answered: 'visiting', silent: [{ guard: 'outOfPatience', target: 'givenUp' }, { target: 'waiting' }] },
    },
    // The holder may have let go meanwhile, so the directory is tried first again.
    waiting: { after: { pause: 'opening' }, on: { leave: 'left' } },
    visiting: {
      tags: 'settled',
      on: { vanished: 'opening', leave: 'left' },
    },
    holding: { type: 'final', tags: 'settled' },
    givenUp: { type: 'final', tags: 'settled' },
    left: { type: 'final' },
  },
})
