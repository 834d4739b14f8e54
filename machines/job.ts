import { setup } from 'xstate'

export type JobEvent =
  /** A worker took the job: the attempt rises by one. */
  | { readonly type: 'claimed' }
  /** The worker says that it is still there. */
  | { readonly type: 'renewed' }
  | { readonly type: 'completed' }
  /** The attempt failed and none is left, or the worker gave the job up. */
  | { readonly type: 'failed' }
  /** The attempt failed and another one follows. */
  | { readonly type: 'retried' }
  /** The handler asked to be called again later. */
  | { readonly type: 'postponed' }
  /** The worker gives the job back untouched, because it drains. */
  | { readonly type: 'released' }
  /** The worker was not heard from for a whole lease. */
  | { readonly type: 'expired' }
  /** As expired, for the last time that is allowed. */
  | { readonly type: 'lost' }
  /** Somebody asked a running job to stop. */
  | { readonly type: 'cancelRequested' }
  | { readonly type: 'cancelled' }
  /** A person starts an ended job once more: a new run of the same job. */
  | { readonly type: 'redriven' }

/**
 * What may become of a job. It holds no data: which of two events happened (`retried` or `failed`, `expired` or `lost`) is a
 * matter of counts in the row, and the store decides it before it asks here whether the step is legal.
 */
export const job = setup({
  types: { events: {} as JobEvent, tags: {} as 'ended' },
}).createMachine({
  id: 'job',
  initial: 'SCHEDULED',
  states: {
    SCHEDULED: {
      on: { claimed: 'RUNNING', cancelled: 'CANCELLED' },
    },
    RUNNING: {
      on: {
        renewed: 'RUNNING',
        cancelRequested: 'RUNNING',
        completed: 'COMPLETED',
        failed: 'FAILED',
        lost: 'FAILED',
        cancelled: 'CANCELLED',
        retried: 'SCHEDULED',
        postponed: 'SCHEDULED',
        released: 'SCHEDULED',
        expired: 'SCHEDULED',
      },
    },
    COMPLETED: { tags: 'ended' },
    FAILED: { tags: 'ended', on: { redriven: 'SCHEDULED' } },
    CANCELLED: { tags: 'ended', on: { redriven: 'SCHEDULED' } },
  },
})
