// Jobs ↔ messages of api/millrace/v1/job.proto and the requests that make them.

import { create } from '@bufbuild/protobuf'
import {
  type ExecutionConfig as ExecutionMessage,
  type Job as JobMessage,
  type JobParams as JobParamsMessage,
  JobParamsSchema,
  type JobResult as JobResultMessage,
  JobResultSchema,
  JobSchema,
} from '../../api/gen/millrace/v1/job_pb.js'
import {
  type EnqueueJobRequest,
  type EnqueueJobResponse,
  EnqueueJobResponseSchema,
} from '../../api/gen/millrace/v1/service_pb.js'
import { InputInvalid } from '../jobs/faults.ts'
import type { Enqueued, EnqueueRequest, Job, JobParams } from '../jobs/job.ts'
import { type JobState, jobStates } from '../jobs/transitions.ts'
import { toMs, toName, toNumber, toTimestamp } from './translate-number.ts'
import { toJson, toValue } from './translate-value.ts'

const priorities = ['high', 'normal', 'low'] as const satisfies readonly Job['priority'][]

export const toState = (field: string, number: number): JobState | undefined => toName(field, jobStates, number)
export const fromState = (state: JobState): number => jobStates.indexOf(state) + 1

/** What differs from the server's own; a 0 is left to the server. */
type Given<T> = { readonly [K in keyof T]?: T[K] }

export const toEnqueueRequest = (message: EnqueueJobRequest): EnqueueRequest => {
  const priority = toName('priority', priorities, message.priority)
  const notBefore = toMs('notBefore', message.notBefore)
  const { maxAttempts, backoffBaseMs, backoffCapMs } = message
  const retry = present({ maxAttempts, backoffBaseMs, backoffCapMs })
  const execution = message.execution && toExecution(message.execution)
  return {
    queue: message.queue || 'default',
    params: toParams(message.params),
    ...(message.requestId ? { requestId: message.requestId } : {}),
    ...(message.jobId ? { jobId: message.jobId } : {}),
    ...(priority ? { priority } : {}),
    ...(notBefore === undefined ? {} : { notBefore }),
    ...(message.delayMs ? { delayMs: toNumber('delayMs', message.delayMs) } : {}),
    ...(message.timeoutMs ? { timeoutMs: message.timeoutMs } : {}),
    ...(Object.keys(retry).length > 0 ? { retry } : {}),
    ...(execution && Object.keys(execution).length > 0 ? { execution } : {}),
  }
}

const toExecution = (message: ExecutionMessage): Given<Job['execution']> => {
  const { leaseMs, heartbeatMs, graceMs, batching } = message
  const { flushIntervalMs, maxBatchSize, batchSizeBound, maxBatchBytes, playbackIntervalMs } = batching ?? {}
  const given = {
    leaseMs,
    heartbeatMs,
    graceMs,
    flushIntervalMs,
    maxBatchSize,
    batchSizeBound,
    maxBatchBytes,
    playbackIntervalMs,
    maxOutputBytes: toNumber('execution.maxOutputBytes', message.maxOutputBytes),
  }
  return present(Object.fromEntries(Object.entries(given).filter(([, value]) => value !== 0)))
}

const present = <T>(values: Readonly<Record<string, T | undefined>>): Record<string, T> =>
  Object.fromEntries(Object.entries(values).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])))

const toParams = (message: JobParamsMessage | undefined): JobParams => {
  const kind = message?.kind
  switch (kind?.case) {
    case 'command': {
      const { argv, cwd, env, stdin } = kind.value
      return {
        kind: 'command',
        argv,
        ...(cwd ? { cwd } : {}),
        ...(Object.keys(env).length > 0 ? { env } : {}),
        ...(stdin ? { stdin } : {}),
      }
    }
    case 'handler': {
      const { name, input } = kind.value
      return { kind: 'handler', name, input: input ? toJson('params.handler.input', input) : null }
    }
    default:
      throw new InputInvalid('params', "must have a 'command' or a 'handler'")
  }
}

const fromParams = (params: JobParams): JobParamsMessage =>
  create(JobParamsSchema, {
    kind:
      params.kind === 'handler'
        ? { case: 'handler', value: { name: params.name, input: toValue(params.input) } }
        : {
            case: 'command',
            value: {
              argv: [...params.argv],
              cwd: params.cwd ?? '',
              env: { ...params.env },
              stdin: params.stdin ?? '',
            },
          },
  })

export const fromEnqueued = (enqueued: Enqueued): EnqueueJobResponse =>
  create(EnqueueJobResponseSchema, {
    jobId: enqueued.jobId,
    createdAt: toTimestamp(enqueued.createdAt),
    state: fromState(enqueued.state),
    created: enqueued.created,
  })

export const fromResult = (result: unknown, error: string | undefined): JobResultMessage =>
  create(JobResultSchema, {
    ...(result === undefined ? {} : { value: toValue(result) }),
    error: error ?? '',
  })

export const fromJob = (job: Job): JobMessage => {
  const { leaseMs, heartbeatMs, graceMs, maxOutputBytes, ...batching } = job.execution
  const hasResult = job.result !== undefined || job.error !== undefined
  return create(JobSchema, {
    id: job.id,
    queue: job.queue,
    priority: priorities.indexOf(job.priority) + 1,
    state: fromState(job.state),
    params: fromParams(job.params),
    attempt: job.attempt,
    run: job.run,
    notBefore: toTimestamp(job.notBefore),
    timeoutMs: job.timeoutMs ?? 0,
    execution: { leaseMs, heartbeatMs, graceMs, maxOutputBytes: BigInt(maxOutputBytes), batching },
    retry: job.retry,
    failedAttempts: job.failedAttempts,
    lostAttempts: job.lostAttempts,
    workerId: job.workerId ?? '',
    requestId: job.requestId ?? '',
    ...(job.cancelRequestedAt === undefined ? {} : { cancelRequestedAt: toTimestamp(job.cancelRequestedAt) }),
    createdAt: toTimestamp(job.createdAt),
    updatedAt: toTimestamp(job.updatedAt),
    ...(hasResult ? { result: fromResult(job.result, job.error) } : {}),
  })
}
