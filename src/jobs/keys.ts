// How a job becomes rows, and nobody else knows. The jobs table holds, side by side:
//   <job id>                        the job row, at most 2 KB
//   request#<queue>#<request id>    which job a request made
//   params#<job id>                 params too long for the row
//   result#<job id>#<attempt>       a result too long for the row
//   error#<job id>#<attempt>        an error text too long for the row

import type { ExecutionConfig } from '../config/sections/jobs.ts'
import { assert } from '../kernel/assert.ts'
import { spread } from '../kernel/spread.ts'
import type { Message, Priority } from '../queues/port.ts'
import type { Action, Key, Row, TableSchema, Value } from '../tables/port.ts'
import { limits } from './check.ts'
import type { Job, JobParams, Json } from './job.ts'
import { isEnded, type JobState } from './transitions.ts'

export const jobsTable: TableSchema = {
  name: 'jobs',
  partition: 'job_id',
  ttl: 'ttl',
  indexes: {
    /** Jobs of a queue by time, spread over shards so that a busy queue is no hot spot. */
    listing: { partition: 'list_shard', sort: { attribute: 'list_key', type: 'string' } },
    /** Jobs that somebody must look at, by when. */
    due: { partition: 'due_shard', sort: { attribute: 'due_at', type: 'number' } },
  },
}

export const dueShards = 16
export const listShards = 8

export const jobKey = (jobId: string): Key => [jobId]
export const requestKey = (queue: string, requestId: string): Key => [`request#${queue}#${requestId}`]
export const paramsKey = (jobId: string): Key => [`params#${jobId}`]
export const resultKey = (jobId: string, attempt: number): Key => [`result#${jobId}#${attempt}`]
export const errorKey = (jobId: string, attempt: number): Key => [`error#${jobId}#${attempt}`]

const dueShard = (jobId: string): string => String(spread(jobId, dueShards))
export const listShard = (queue: string, shard: number): string => `${queue}#${shard}`
/** Time, then id: a total order, so that a page can end anywhere. */
export const listKey = (createdAt: number, jobId = ''): string => `${String(createdAt).padStart(15, '0')}#${jobId}`

export const seconds = (ms: number): number => Math.ceil(ms / 1000)

/** Expired rows may still be there for days; nobody is to see them. */
export const isExpired = (row: Row, now: number): boolean => {
  const ttl = row['ttl']
  return typeof ttl === 'number' && ttl * 1000 <= now
}

export interface NewJob {
  readonly id: string
  readonly queue: string
  readonly priority: Priority
  readonly paramsText: string
  readonly requestId: string | undefined
  readonly notBefore: number
  readonly timeoutMs: number | undefined
  readonly executionText: string
  readonly maxAttempts: number
  readonly backoffBaseMs: number
  readonly backoffCapMs: number
  readonly now: number
  readonly dueAt: number | undefined
}

/** The rows of a job that does not exist yet. The first is the job row. */
export const newJobActions = (job: NewJob): readonly Action[] => {
  const inline = job.paramsText.length <= limits.inlineBytes && Buffer.byteLength(job.paramsText) <= limits.inlineBytes
  const row: Record<string, Value> = {
    job_id: job.id,
    queue: job.queue,
    priority: job.priority,
    state: 'SCHEDULED' satisfies JobState,
    attempt: 0,
    run: 1,
    not_before: job.notBefore,
    execution_config: job.executionText,
    max_attempts: job.maxAttempts,
    backoff_base_ms: job.backoffBaseMs,
    backoff_cap_ms: job.backoffCapMs,
    created_at: job.now,
    updated_at: job.now,
    list_shard: listShard(job.queue, spread(job.id, listShards)),
    list_key: listKey(job.now, job.id),
    due_shard: dueShard(job.id),
  }
  if (inline) row['params'] = job.paramsText
  if (job.timeoutMs !== undefined) row['timeout_ms'] = job.timeoutMs
  if (job.requestId !== undefined) row['request_id'] = job.requestId
  if (job.dueAt !== undefined) row['due_at'] = job.dueAt
  const put: Action = { kind: 'put', table: jobsTable.name, row, if: { test: 'absent' }, keep: true }
  if (inline) return [put]
  const paramsRow: Row = { job_id: paramsKey(job.id)[0], params: job.paramsText }
  return [put, { kind: 'put', table: jobsTable.name, row: paramsRow }]
}

/** Whether the row holds all the texts of its job. */
export const isWhole = (row: Row): boolean =>
  row['params'] !== undefined && row['result_outside'] === undefined && row['error_outside'] === undefined

/** Where the texts of a job are that its row may not hold. */
export const textKeys = (row: Row): { params?: Key; result?: Key; error?: Key } => {
  const id = text(row, 'job_id')
  const attempt = number(row, 'attempt')
  const outside = (name: string) => row[`${name}_outside`] === true
  return {
    ...(row['params'] === undefined ? { params: paramsKey(id) } : {}),
    ...(outside('result') ? { result: resultKey(id, attempt) } : {}),
    ...(outside('error') ? { error: errorKey(id, attempt) } : {}),
  }
}

/** The job of a row. Texts that are items of their own were fetched by the caller. */
export const toJob = (row: Row, texts: { params?: string; result?: string; error?: string } = {}): Job => {
  const params = texts.params ?? optionalText(row, 'params')
  assert(params !== undefined, `job ${row['job_id']} has no params`)
  const result = texts.result ?? optionalText(row, 'result')
  return {
    id: text(row, 'job_id'),
    queue: text(row, 'queue'),
    priority: text(row, 'priority') as Priority,
    state: text(row, 'state') as JobState,
    params: JSON.parse(params) as JobParams,
    attempt: number(row, 'attempt'),
    run: number(row, 'run'),
    notBefore: number(row, 'not_before'),
    timeoutMs: optionalNumber(row, 'timeout_ms'),
    execution: executionOf(row),
    retry: {
      maxAttempts: number(row, 'max_attempts'),
      backoffBaseMs: number(row, 'backoff_base_ms'),
      backoffCapMs: number(row, 'backoff_cap_ms'),
    },
    failedAttempts: count(row, 'failed_attempts'),
    lostAttempts: count(row, 'lost_attempts'),
    workerId: optionalText(row, 'worker_id'),
    requestId: optionalText(row, 'request_id'),
    cancelRequestedAt: optionalNumber(row, 'cancel_requested_at'),
    watchedUntil: optionalNumber(row, 'watched_until'),
    createdAt: number(row, 'created_at'),
    updatedAt: number(row, 'updated_at'),
    result: result === undefined ? undefined : (JSON.parse(result) as Json),
    error: texts.error ?? optionalText(row, 'error'),
  }
}

// Nearly all jobs share the server's own configuration: parse each text once.
const parsedConfigs = new Map<string, ExecutionConfig>()
const parsedConfigsMax = 1_000

export const executionOf = (row: Row): ExecutionConfig => {
  const stored = text(row, 'execution_config')
  const known = parsedConfigs.get(stored)
  if (known) return known
  const parsed = Object.freeze(JSON.parse(stored) as ExecutionConfig)
  if (parsedConfigs.size >= parsedConfigsMax) parsedConfigs.clear()
  parsedConfigs.set(stored, parsed)
  return parsed
}

/** The hint that the job of this row may be ready, as it stands. */
export const messageOf = (row: Row): Message => ({
  jobId: text(row, 'job_id'),
  queue: text(row, 'queue'),
  priority: text(row, 'priority') as Priority,
  attempt: number(row, 'attempt'),
})

export const stateOf = (row: Row): JobState => text(row, 'state') as JobState
export const isEndedRow = (row: Row): boolean => isEnded(stateOf(row))

export const text = (row: Row, attribute: string): string => {
  const value = row[attribute]
  assert(typeof value === 'string', `row ${row['job_id']} has no ${attribute}`)
  return value
}

export const number = (row: Row, attribute: string): number => {
  const value = row[attribute]
  assert(typeof value === 'number', `row ${row['job_id']} has no ${attribute}`)
  return value
}

/** A counter that is absent until something was counted. */
export const count = (row: Row, attribute: string): number => optionalNumber(row, attribute) ?? 0

const optionalText = (row: Row, attribute: string): string | undefined => {
  const value = row[attribute]
  return typeof value === 'string' ? value : undefined
}

const optionalNumber = (row: Row, attribute: string): number | undefined => {
  const value = row[attribute]
  return typeof value === 'number' ? value : undefined
}
