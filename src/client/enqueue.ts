// Enqueueing, so that a lost answer never makes a second job: each request has an id before it is first sent, and every
// repetition carries the same one. The server keeps the id with the job in one step.

import { toBinary } from '@bufbuild/protobuf'
import type { Client } from '@connectrpc/connect'
import {
  type EnqueueJobRequest,
  EnqueueJobRequestSchema,
  type EnqueueJobResponse,
  type EnqueueJobsAnswer,
  type JobService,
} from '../../api/gen/millrace/v1/service_pb.js'
import type { Enqueued, EnqueueRequest } from '../jobs/job.ts'
import { assert } from '../kernel/assert.ts'
import { type Fault, isFault } from '../kernel/fault.ts'
import type { Ids } from '../kernel/ids.ts'
import type { Call, Send } from './caller.ts'
import { ServerFault } from './faults.ts'
import { faultOfInfo } from './from-connect-error.ts'
import { msOf, stateOf, wireRequest } from './job-wire.ts'

export interface EnqueueDeps {
  readonly service: Client<typeof JobService>
  readonly call: Call
  readonly ids: Ids
}

export const enqueue = async ({ service, call, ids }: EnqueueDeps, request: EnqueueRequest): Promise<Enqueued> => {
  const { message } = encoded(ids, request)
  if (isFault(message)) throw message
  const { requestId } = message
  return call({ twice: 'safe', requestId }, async (options) => enqueuedOf(await service.enqueueJob(message, options)))
}

/** An answer for each request, in order; one that is refused does not hold up the others. */
export const enqueueMany = async (
  deps: EnqueueDeps,
  requests: readonly EnqueueRequest[],
): Promise<readonly (Enqueued | Fault)[]> => {
  const all = requests.map((request) => encoded(deps.ids, request))
  const answers: (Enqueued | Fault)[] = []
  // One call after the other, so that jobs are made in the order of their requests.
  for (const part of parted(all)) answers.push(...(await enqueuePart(deps, part)))
  return answers
}

interface Encoded {
  readonly message: EnqueueJobRequest | Fault
  readonly bytes: number
}

/** What cannot even be written down never leaves: it gets the answer that the server would give. */
const encoded = (ids: Ids, request: EnqueueRequest): Encoded => {
  try {
    const message = wireRequest({ ...request, requestId: request.requestId ?? ids.next() })
    return { message, bytes: toBinary(EnqueueJobRequestSchema, message).length }
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause)
    return { message: new ServerFault('INPUT_INVALID', `request: ${reason}`, 'never', { cause }), bytes: 0 }
  }
}

/** What one call carries at the most. */
const callJobsMax = 1_000
const callBytesMax = 1_024 * 1_024

const parted = (all: readonly Encoded[]): readonly (readonly Encoded[])[] => {
  const parts: Encoded[][] = []
  let bytes = 0
  for (const one of all) {
    const last = parts.at(-1)
    if (last && last.length < callJobsMax && bytes + one.bytes <= callBytesMax) last.push(one)
    else {
      parts.push([one])
      bytes = 0
    }
    bytes += one.bytes
  }
  return parts
}

type Answer = Enqueued | Fault | undefined
const isBusy = (answer: Answer): answer is Fault => isFault(answer) && answer.retry === 'later'

/** Jobs that the store had no room for are sent again within the call's deadline, each under its own id. */
const enqueuePart = async (
  { service, call }: EnqueueDeps,
  part: readonly Encoded[],
): Promise<readonly (Enqueued | Fault)[]> => {
  const answers: Answer[] = part.map(({ message }) => (isFault(message) ? message : undefined))
  const sendOpen: Send<void> = async (options) => {
    const open = [...part.entries()].filter(([index]) => answers[index] === undefined || isBusy(answers[index]))
    const jobs = open.map(([, { message }]) => message as EnqueueJobRequest)
    const given = jobs.length === 0 ? [] : (await service.enqueueJobs({ jobs }, options)).answers
    assert(given.length === jobs.length, `${given.length} answers for ${jobs.length} jobs`)
    for (const [place, [index]] of open.entries()) answers[index] = answerOf(given[place], jobs[place])
    const busy = answers.find(isBusy)
    if (busy) throw busy
  }
  let failed: Fault | undefined
  try {
    await call({ twice: 'safe' }, sendOpen)
  } catch (error) {
    if (!isFault(error)) throw error
    failed = error
  }
  return part.map(({ message }, index) => answers[index] ?? unanswered(failed, message))
}

const answerOf = (answer: EnqueueJobsAnswer | undefined, message: EnqueueJobRequest | undefined): Enqueued | Fault => {
  assert(answer?.outcome.case, 'an answer that says nothing')
  if (answer.outcome.case === 'made') return enqueuedOf(answer.outcome.value)
  return faultOfInfo(answer.outcome.value, { requestId: message?.requestId })
}

/** The call's fault, with the id under which this one of its jobs can be asked for again. */
const unanswered = (fault: Fault | undefined, message: EnqueueJobRequest | Fault): Fault => {
  assert(fault && !isFault(message), 'a call that succeeded left a job unanswered')
  return new ServerFault(fault.code, fault.message, fault.retry, { requestId: message.requestId, cause: fault })
}

const enqueuedOf = ({ jobId, createdAt, state, created }: EnqueueJobResponse): Enqueued => ({
  jobId,
  createdAt: msOf(createdAt) ?? 0,
  state: stateOf(state),
  created,
})
