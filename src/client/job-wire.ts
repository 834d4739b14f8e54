// Jobs as they travel, and as the rest of the program knows them. Numbers that are 64 bits wide on the wire are times and sizes,
// which fit into ours.

import { create, fromJson, type MessageInitShape, toJson } from '@bufbuild/protobuf'
import { type Timestamp, timestampFromMs, timestampMs, type Value, ValueSchema } from '@bufbuild/protobuf/wkt'
import {
  type ExecutionConfigSchema,
  type JobParamsSchema,
  JobState as JobStateNumber,
  Priority as PriorityNumber,
  type ExecutionConfig as WireExecution,
  type Job as WireJob,
  type JobParams as WireParams,
} from '../../api/gen/millrace/v1/job_pb.js'
import { type EnqueueJobRequest, EnqueueJobRequestSchema } from '../../api/gen/millrace/v1/service_pb.js'
import type { ExecutionConfig } from '../config/sections/jobs.ts'
import type { EnqueueRequest, Job, JobParams, Json } from '../jobs/job.ts'
import type { JobState } from '../jobs/transitions.ts'
import { assert } from '../kernel/assert.ts'
import type { Priority } from '../queues/port.ts'

export const jobOf = (job: WireJob | undefined): Job => {
  assert(job?.params, 'an answer without its job')
  return {
    id: job.id,
    queue: job.queue,
    priority: priorityOf(job.priority),
    state: stateOf(job.state),
    params: paramsOf(job.params),
    attempt: job.attempt,
    run: job.run,
    notBefore: msOf(job.notBefore) ?? 0,
    timeoutMs: job.timeoutMs || undefined,
    execution: executionOf(job.execution),
    retry: {
      maxAttempts: job.retry?.maxAttempts ?? 0,
      backoffBaseMs: job.retry?.backoffBaseMs ?? 0,
      backoffCapMs: job.retry?.backoffCapMs ?? 0,
    },
    failedAttempts: job.failedAttempts,
    lostAttempts: job.lostAttempts,
    workerId: job.workerId || undefined,
    requestId: job.requestId || undefined,
    cancelRequestedAt: msOf(job.cancelRequestedAt),
    // Of no use outside the server: it tells workers in the answers to their heartbeats.
    watchedUntil: undefined,
    createdAt: msOf(job.createdAt) ?? 0,
    updatedAt: msOf(job.updatedAt) ?? 0,
    result: jsonOf(job.result?.value),
    error: job.result?.error || undefined,
  }
}

export const wireRequest = (request: EnqueueRequest & { readonly requestId: string }): EnqueueJobRequest =>
  create(EnqueueJobRequestSchema, {
    queue: request.queue,
    params: wireParams(request.params),
    requestId: request.requestId,
    jobId: request.jobId ?? '',
    priority: request.priority === undefined ? PriorityNumber.UNSPECIFIED : wirePriority[request.priority],
    ...(request.notBefore === undefined ? {} : { notBefore: timestampFromMs(request.notBefore) }),
    delayMs: BigInt(request.delayMs ?? 0),
    timeoutMs: request.timeoutMs ?? 0,
    ...optional('maxAttempts', request.retry?.maxAttempts),
    ...optional('backoffBaseMs', request.retry?.backoffBaseMs),
    ...optional('backoffCapMs', request.retry?.backoffCapMs),
    ...(request.execution === undefined ? {} : { execution: wireExecution(request.execution) }),
  })

export const msOf = (timestamp: Timestamp | undefined): number | undefined =>
  timestamp === undefined ? undefined : timestampMs(timestamp)

export const jsonOf = (value: Value | undefined): Json | undefined =>
  value === undefined ? undefined : (toJson(ValueSchema, value) as Json)

export const wireJson = (json: Json): Value => fromJson(ValueSchema, json as Parameters<typeof fromJson>[1])

export const stateOf = (number: JobStateNumber): JobState => {
  const name = JobStateNumber[number]
  assert(name && number !== JobStateNumber.UNSPECIFIED, `a job in the unknown state ${number}`)
  return name as JobState
}

export const wireState = (state: JobState | undefined): JobStateNumber =>
  state === undefined ? JobStateNumber.UNSPECIFIED : JobStateNumber[state]

const wirePriority: Readonly<Record<Priority, PriorityNumber>> = {
  high: PriorityNumber.HIGH,
  normal: PriorityNumber.NORMAL,
  low: PriorityNumber.LOW,
}

const priorityOf = (number: PriorityNumber): Priority =>
  number === PriorityNumber.HIGH ? 'high' : number === PriorityNumber.LOW ? 'low' : 'normal'

const paramsOf = ({ kind }: WireParams): JobParams => {
  assert(kind.case, 'a job that does nothing')
  if (kind.case === 'handler') {
    return { kind: 'handler', name: kind.value.name, input: jsonOf(kind.value.input) ?? null }
  }
  const { argv, cwd, env, stdin } = kind.value
  return {
    kind: 'command',
    argv,
    ...(cwd ? { cwd } : {}),
    ...(Object.keys(env).length > 0 ? { env } : {}),
    ...(stdin ? { stdin } : {}),
  }
}

const wireParams = (params: JobParams): MessageInitShape<typeof JobParamsSchema> => {
  if (params.kind === 'handler') {
    return { kind: { case: 'handler', value: { name: params.name, input: wireJson(params.input) } } }
  }
  const { argv, cwd = '', env = {}, stdin = '' } = params
  return { kind: { case: 'command', value: { argv: [...argv], cwd, env: { ...env }, stdin } } }
}

const executionOf = (config: WireExecution | undefined): ExecutionConfig => ({
  leaseMs: config?.leaseMs ?? 0,
  heartbeatMs: config?.heartbeatMs ?? 0,
  flushIntervalMs: config?.batching?.flushIntervalMs ?? 0,
  maxBatchSize: config?.batching?.maxBatchSize ?? 0,
  batchSizeBound: config?.batching?.batchSizeBound ?? 0,
  maxBatchBytes: config?.batching?.maxBatchBytes ?? 0,
  playbackIntervalMs: config?.batching?.playbackIntervalMs ?? 0,
  graceMs: config?.graceMs ?? 0,
  maxOutputBytes: Number(config?.maxOutputBytes ?? 0),
})

/** A field that is not set travels as 0, which leaves it to the server. */
const wireExecution = (config: Partial<ExecutionConfig>): MessageInitShape<typeof ExecutionConfigSchema> => ({
  leaseMs: config.leaseMs ?? 0,
  heartbeatMs: config.heartbeatMs ?? 0,
  batching: {
    flushIntervalMs: config.flushIntervalMs ?? 0,
    maxBatchSize: config.maxBatchSize ?? 0,
    batchSizeBound: config.batchSizeBound ?? 0,
    maxBatchBytes: config.maxBatchBytes ?? 0,
    playbackIntervalMs: config.playbackIntervalMs ?? 0,
  },
  graceMs: config.graceMs ?? 0,
  maxOutputBytes: BigInt(config.maxOutputBytes ?? 0),
})

const optional = <Name extends string>(name: Name, value: number | undefined): { [K in Name]?: number } =>
  (value === undefined ? {} : { [name]: value }) as { [K in Name]?: number }
