// The store as a worker on another machine sees it. The task token of each attempt stays in here: every heartbeat brings a new
// one, and the worker deals in holds as if it sat beside the store.

import type { MessageInitShape } from '@bufbuild/protobuf'
import { createClient, type Transport } from '@connectrpc/connect'
import {
  type CompleteJobRequestSchema,
  type DequeuedJob,
  type PublishEventsResponse,
  WorkerService as WireService,
} from '../../api/gen/millrace/v1/service_pb.js'
import type { Claim, Hold, Outcome, Renewal, Settled } from '../jobs/job.ts'
import { isFault } from '../kernel/fault.ts'
import type { StoredItem } from '../log/event.ts'
import type { WorkerService } from '../worker/service.ts'
import type { Call } from './caller.ts'
import { wireItem } from './event-wire.ts'
import { ServerFault } from './faults.ts'
import { jobOf, msOf, stateOf, wireJson } from './job-wire.ts'
import type { TaskTokens } from './task-tokens.ts'

export interface RemoteDeps {
  readonly transport: Transport
  readonly call: Call
  readonly tokens: TaskTokens
}

export const createRemoteWorkerService = ({ transport, call, tokens }: RemoteDeps): WorkerService => {
  const service = createClient(WireService, transport)

  /** Everything that an attempt does: with its newest token, and over for good when the server says so. */
  const act = async <Answer>(
    hold: Hold,
    work: (taskToken: string, use: number) => Promise<Answer>,
  ): Promise<Answer> => {
    const shown = tokens.show(hold)
    if (!shown) throw claimLost(hold)
    try {
      return await work(shown.token, shown.use)
    } catch (error) {
      if (!isFault(error) || !isOver(error.code)) throw error
      tokens.forget(hold)
      throw claimLost(hold, error)
    }
  }

  const publishAll = async (taskToken: string, items: readonly StoredItem[]): Promise<Renewal> => {
    let renewal: Renewal = { cancelRequested: false, watchedUntil: undefined }
    // In order, and one after the other: a reader never sees a later item without the earlier ones.
    for (const part of itemParts(items)) {
      const message = { taskToken, items: part.map(wireItem) }
      renewal = renewalOf(await call({ twice: 'safe' }, (options) => service.publishEvents(message, options)))
    }
    return renewal
  }

  return {
    // Never repeated in here: jobs whose answer was lost are claimed all the same, and would be claimed in vain a second time.
    claim: async ({ queue, workerId, max, waitMs, signal }) => {
      try {
        const asked = { queue, workerId, maxJobs: max, waitMs }
        return await call({ twice: 'never', waitMs, signal }, async (options) => {
          const { jobs } = await service.dequeueJobs(asked, options)
          return jobs.map((dequeued) => keepClaim(tokens, dequeued))
        })
      } catch (error) {
        if (signal?.aborted) return []
        throw error
      }
    },
    renew: (hold) =>
      act(hold, async (taskToken, use) => {
        const answer = await call({ twice: 'safe' }, (options) => service.updateJobVisibility({ taskToken }, options))
        tokens.keep(hold, answer.taskToken, { use })
        return renewalOf(answer)
      }),
    publish: (hold, items) => act(hold, (taskToken) => publishAll(taskToken, items)),
    // The server knows an attempt's end by its PROCESS_END: the same one twice is the same answer twice.
    settle: (hold, outcome, { output, end }) =>
      act(hold, async (taskToken) => {
        // What is too much for one call goes ahead of it: it is output like any other, and the end still comes with the outcome.
        const parts = itemParts([...output, end])
        for (const part of parts.slice(0, -1)) await publishAll(taskToken, part)
        const message = { taskToken, outcome: wireOutcome(outcome), items: (parts.at(-1) ?? []).map(wireItem) }
        const settled = await call({ twice: 'safe' }, async (options) =>
          settledOf(await service.completeJob(message, options)),
        )
        tokens.forget(hold)
        return settled
      }),
    release: (hold) =>
      act(hold, async (taskToken) => {
        const settled = await call({ twice: 'safe' }, async (options) =>
          settledOf(await service.releaseJob({ taskToken }, options)),
        )
        tokens.forget(hold)
        return settled
      }),
    // Nobody tells anything at once over the wire; heartbeats and publishing tell it later.
    listen: () => () => {},
  }
}

/** Well below what a server takes as one request. */
const callBytesMax = 2 * 1_024 * 1_024

/** Items in as few calls as they fit into; one call if there are none, since its answer is wanted too. */
const itemParts = (items: readonly StoredItem[]): readonly (readonly StoredItem[])[] => {
  const parts: StoredItem[][] = [[]]
  let bytes = 0
  for (const item of items) {
    const last = parts.at(-1)
    if (last?.length && bytes + item.payload.length > callBytesMax) {
      parts.push([item])
      bytes = 0
    } else last?.push(item)
    bytes += item.payload.length
  }
  return parts
}

/** A token that is refused can never be replaced by a better one: to its worker the attempt is over. */
const isOver = (code: string): boolean => code === 'CLAIM_LOST' || code === 'TOKEN_REFUSED'

const claimLost = ({ jobId, attempt }: Hold, cause?: unknown): ServerFault =>
  new ServerFault(
    'CLAIM_LOST',
    `attempt ${attempt} of job ${jobId} is over; nothing it does counts any more`,
    'never',
    {
      jobId,
      cause,
    },
  )

const keepClaim = (tokens: TaskTokens, { job: wireJob, taskToken }: DequeuedJob): Claim => {
  const job = jobOf(wireJob)
  const hold = { jobId: job.id, queue: job.queue, attempt: job.attempt }
  tokens.keep(hold, taskToken, { leaseMs: job.execution.leaseMs })
  return { job, hold }
}

const renewalOf = ({
  cancelRequested,
  watchedUntil,
}: Omit<PublishEventsResponse, '$typeName' | '$unknown'>): Renewal => ({
  cancelRequested,
  watchedUntil: msOf(watchedUntil),
})

const settledOf = (answer: {
  readonly state: Parameters<typeof stateOf>[0]
  readonly notBefore?: Parameters<typeof msOf>[0]
}): Settled => ({ state: stateOf(answer.state), notBefore: msOf(answer.notBefore) })

type WireOutcome = NonNullable<MessageInitShape<typeof CompleteJobRequestSchema>['outcome']>

const wireOutcome = (outcome: Outcome): WireOutcome => {
  switch (outcome.kind) {
    case 'done':
      return {
        case: 'done',
        value: outcome.result === undefined ? {} : { result: { value: wireJson(outcome.result) } },
      }
    case 'failed':
      return { case: 'failed', value: { error: outcome.error } }
    case 'giveUp':
      return { case: 'giveUp', value: { error: outcome.error } }
    case 'later':
      return { case: 'later', value: { inMs: BigInt(outcome.inMs) } }
    case 'cancelled':
      return { case: 'cancelled', value: {} }
  }
}
