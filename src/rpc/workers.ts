// WorkerService: task tokens become holds, holds become task tokens; the rest is translation.

import type { ServiceImpl } from '@connectrpc/connect'
import type { JobEvent } from '../../api/gen/millrace/v1/event_pb.js'
import type { CompleteJobRequest, WorkerService as WorkerServiceApi } from '../../api/gen/millrace/v1/service_pb.js'
import { checkWhole } from '../jobs/check.ts'
import { InputInvalid } from '../jobs/faults.ts'
import type { Closing, Hold, Outcome, Renewal, Settled } from '../jobs/job.ts'
import { itemBytesMax, publishItemsMax } from '../jobs/publish.ts'
import type { JobStore } from '../jobs/store.ts'
import type { Tokens } from '../jobs/tokens.ts'
import type { Clock } from '../kernel/clock.ts'
import type { EndInfo } from '../log/attempt-log.ts'
import { eventTypes, type StoredItem } from '../log/event.ts'
import type { WorkerService } from '../worker/service.ts'
import { ServerDraining } from './faults.ts'
import { createLeases } from './leases.ts'
import { link } from './signals.ts'
import { toEvent, toItem } from './translate-event.ts'
import { fromJob, fromState } from './translate-job.ts'
import { toNumber, toTimestamp } from './translate-number.ts'
import { toJson } from './translate-value.ts'

/**
 * A PROCESS_END for an attempt whose worker sent none, to stand behind everything in its log and behind `after`. A call may be
 * repeated, and a settle is recognised by its end: if the log has a PROCESS_END already, that one is the answer.
 */
export type BareEnd = (hold: Hold, info: EndInfo, after: number) => Promise<StoredItem>

/** Events as items, each with the sequences and the time that the worker gave. */
export type EncodeEvents = (events: readonly JobEvent[]) => readonly StoredItem[]

export interface WorkerDeps {
  readonly clock: Pick<Clock, 'now'>
  readonly store: Pick<JobStore, 'get'>
  readonly worker: Omit<WorkerService, 'listen'>
  readonly tokens: Tokens
  readonly bareEnd: BareEnd
  readonly encodeEvents: EncodeEvents
  /** Aborted when the server stops: nobody waits for jobs any longer. */
  readonly draining: AbortSignal
}

const jobsMax = 1_000
/** Whoever wants to wait longer asks again: a wait holds a call and a connection. */
const waitMsMax = 60_000

export const createWorkerService = (deps: WorkerDeps): ServiceImpl<typeof WorkerServiceApi> => {
  const { worker, tokens } = deps
  const leases = createLeases(deps.store)
  return {
    dequeueJobs: async (request, { signal }) => {
      const max = request.maxJobs || 1
      checkWhole('maxJobs', max, 1, jobsMax)
      const waiting = link(signal, deps.draining)
      const { queue, workerId } = request
      const waitMs = Math.min(request.waitMs, waitMsMax)
      const claims = await worker
        .claim({ queue: queue || 'default', workerId, max, waitMs, signal: waiting.signal })
        .finally(waiting.unlink)
      if (signal.aborted) {
        // Nobody reads the answer: what was claimed for it would wait for its lease to pass.
        await Promise.allSettled(claims.map(({ hold }) => worker.release(hold)))
        throw signal.reason
      }
      if (deps.draining.aborted && claims.length === 0) throw new ServerDraining()
      return {
        jobs: claims.map(({ job, hold }) => {
          leases.note(hold, job.execution.leaseMs)
          return { job: fromJob(job), taskToken: tokens.issue(hold, job.execution.leaseMs) }
        }),
      }
    },
    updateJobVisibility: async ({ taskToken }) => {
      const hold = tokens.verify(taskToken)
      const renewal = await worker.renew(hold)
      return { taskToken: tokens.issue(hold, await leases.of(hold)), ...fromRenewal(renewal) }
    },
    completeJob: async (request) => {
      const hold = tokens.verify(request.taskToken)
      const outcome = toOutcome(request.outcome)
      const settled = await worker.settle(hold, outcome, await toClosing(deps, hold, outcome, request))
      leases.forget(hold)
      return fromSettled(settled)
    },
    releaseJob: async ({ taskToken }) => {
      const hold = tokens.verify(taskToken)
      const settled = await worker.release(hold)
      leases.forget(hold)
      return { state: fromState(settled.state) }
    },
    publishEvents: async ({ taskToken, items, events }) => {
      const hold = tokens.verify(taskToken)
      if (items.length > 0 && events.length > 0) throw new InputInvalid('events', 'cannot be given together with items')
      if (items.length + events.length > publishItemsMax) throw tooMany(items.length > 0 ? 'items' : 'events')
      const now = deps.clock.now()
      const stored =
        events.length > 0
          ? deps.encodeEvents(events.map((event, at) => toEvent(`events[${at}]`, event, now)))
          : items.map((item, at) => toItem(`items[${at}]`, item))
      return fromRenewal(await worker.publish(hold, stored))
    },
  }
}

const tooMany = (field: string) =>
  new InputInvalid(field, `are more than ${publishItemsMax}`, { limit: publishItemsMax })

const fromRenewal = ({ cancelRequested, watchedUntil }: Renewal) => ({
  cancelRequested,
  ...(watchedUntil === undefined ? {} : { watchedUntil: toTimestamp(watchedUntil) }),
})

const fromSettled = ({ state, notBefore }: Settled) => ({
  state: fromState(state),
  ...(notBefore === undefined ? {} : { notBefore: toTimestamp(notBefore) }),
})

const toOutcome = (outcome: CompleteJobRequest['outcome']): Outcome => {
  switch (outcome.case) {
    case 'done': {
      const value = outcome.value.result?.value
      return value ? { kind: 'done', result: toJson('done.result.value', value) } : { kind: 'done' }
    }
    case 'failed':
      return { kind: 'failed', error: outcome.value.error }
    case 'giveUp':
      return { kind: 'giveUp', error: outcome.value.error }
    case 'later':
      return { kind: 'later', inMs: toNumber('later.inMs', outcome.value.inMs) }
    case 'cancelled':
      return { kind: 'cancelled' }
    default:
      throw new InputInvalid('outcome', "must be 'done', 'failed', 'giveUp', 'later' or 'cancelled'")
  }
}

const toClosing = async (
  { bareEnd }: Pick<WorkerDeps, 'bareEnd'>,
  hold: Hold,
  outcome: Outcome,
  { items }: Pick<CompleteJobRequest, 'items'>,
): Promise<Closing> => {
  if (items.length > publishItemsMax) throw tooMany('items')
  const output = items.map((item, at) => toItem(`items[${at}]`, item))
  let last = 0
  for (const [at, { sequence, endSequence, payload, type }] of output.entries()) {
    if (sequence <= last || endSequence < sequence) {
      throw new InputInvalid(`items[${at}]`, `from ${sequence} to ${endSequence}: sequences must rise`)
    }
    if (payload.length > itemBytesMax) {
      throw new InputInvalid(`items[${at}]`, `has ${payload.length} bytes, more than ${itemBytesMax}`, {
        limit: itemBytesMax,
      })
    }
    if (type === eventTypes.processEnd && at < output.length - 1) {
      throw new InputInvalid(`items[${at}]`, 'nothing comes after PROCESS_END')
    }
    last = endSequence
  }
  const end = output.at(-1)
  if (end?.type === eventTypes.processEnd) return { output: output.slice(0, -1), end }
  const error = 'error' in outcome ? { error: outcome.error } : {}
  return { output, end: await bareEnd(hold, error, last) }
}
