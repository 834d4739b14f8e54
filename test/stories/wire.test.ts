// The API as strangers meet it: JSON by hand, and a stock gRPC client with nothing of ours but the generated code.

import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { createClient } from '@connectrpc/connect'
import { createGrpcTransport } from '@connectrpc/connect-node'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { EventType } from '../../api/gen/millrace/v1/event_pb.js'
import { JobState } from '../../api/gen/millrace/v1/job_pb.js'
import { EventService, JobService, WorkerService } from '../../api/gen/millrace/v1/service_pb.js'
import { eventually } from './support/eventually.ts'
import { createPlace } from './support/place.ts'
import { type Service, startService } from './support/service.ts'

const checkout = join(import.meta.dirname, '..', '..')
const place = createPlace(afterAll)
let server: Service
let token: string
beforeAll(async () => {
  // No workers of its own: the calls of a worker are made by hand here.
  server = await startService(place, 'server')
  token = readFileSync(join(place.dataDir, 'token'), 'utf8').trim()
})

type Answer = Record<string, unknown> & { readonly status: number }
const call = async (name: string, body: object = {}, headers: Record<string, string> = {}): Promise<Answer> => {
  const response = await fetch(`${server.address}/millrace.v1.${name}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${token}`, ...headers },
    body: JSON.stringify(body),
  })
  return { status: response.status, ...((await response.json()) as object) }
}
/** A stream in JSON: each message is one byte of flags, four of length and its text. */
const stream = async (name: string, body: object): Promise<readonly unknown[]> => {
  const text = Buffer.from(JSON.stringify(body))
  const head = Buffer.alloc(5)
  head.writeUInt32BE(text.length, 1)
  const response = await fetch(`${server.address}/millrace.v1.${name}`, {
    method: 'POST',
    headers: { 'content-type': 'application/connect+json', authorization: `Bearer ${token}` },
    body: Buffer.concat([head, text]),
  })
  const all = Buffer.from(await response.arrayBuffer())
  const messages: unknown[] = []
  for (let at = 0; at < all.length; ) {
    const end = at + 5 + all.readUInt32BE(at + 1)
    messages.push(JSON.parse(all.subarray(at + 5, end).toString()))
    at = end
  }
  return messages
}
const command = (...argv: readonly string[]) => ({ params: { command: { argv } } })

describe('JSON over plain HTTP', () => {
  test('every unary call works by hand, from enqueue to the dead letters', async () => {
    const made = await call('JobService/EnqueueJob', { ...command('true'), requestId: 'by-hand' })
    expect(made).toMatchObject({ status: 200, state: 'JOB_STATE_SCHEDULED', created: true })
    const { jobId } = made
    const again = await call('JobService/EnqueueJob', { ...command('true'), requestId: 'by-hand' })
    expect(again['jobId']).toBe(jobId)
    expect(again['created'] ?? false).toBe(false)
    const many = await call('JobService/EnqueueJobs', { jobs: [command('false'), { params: {} }] })
    expect(many['answers']).toMatchObject([{ made: { created: true } }, { refused: { code: 'INPUT_INVALID' } }])
    expect(await call('JobService/GetJob', { jobId })).toMatchObject({
      status: 200,
      job: { id: jobId, queue: 'default', params: { command: { argv: ['true'] } }, requestId: 'by-hand' },
    })
    expect((await call('JobService/ListJobs', { pageSize: 10, ascending: true }))['jobs']).toMatchObject([
      { id: jobId },
      {},
    ])

    const dequeued = await call('WorkerService/DequeueJobs', {
      queue: 'default',
      maxJobs: 1,
      waitMs: 1_000,
      workerId: 'w',
    })
    expect(dequeued).toMatchObject({ status: 200, jobs: [{ job: { id: jobId, attempt: 1 } }] })
    const [{ taskToken } = { taskToken: '' }] = dequeued['jobs'] as { taskToken: string }[]
    const renewed = await call('WorkerService/UpdateJobVisibility', { taskToken })
    expect(renewed).toMatchObject({ status: 200, taskToken: expect.any(String) })
    const events = [
      { sequence: '1', type: 'EVENT_TYPE_PROCESS_START', processStart: { attempt: 1, workerId: 'w' } },
      { sequence: '2', type: 'EVENT_TYPE_OUTPUT', output: { output: btoa('by hand\n'), stream: 'STREAM_STDOUT' } },
    ]
    expect(await call('WorkerService/PublishEvents', { taskToken, events })).toMatchObject({ status: 200 })
    expect(await call('JobService/CancelJob', { jobId })).toMatchObject({ status: 200, requested: true })
    const done = { result: { value: { answer: 42 } } }
    expect(await call('WorkerService/CompleteJob', { taskToken, done })).toMatchObject({
      status: 200,
      state: 'JOB_STATE_COMPLETED',
    })
    expect(await call('JobService/GetJob', { jobId })).toMatchObject({
      job: { state: 'JOB_STATE_COMPLETED', result: { value: { answer: 42 } } },
    })

    const next = await call('WorkerService/DequeueJobs', { queue: 'default', waitMs: 1_000, workerId: 'w' })
    const [{ taskToken: second, job } = { taskToken: '', job: { id: '' } }] = next['jobs'] as {
      taskToken: string
      job: { id: string }
    }[]
    expect(await call('WorkerService/ReleaseJob', { taskToken: second })).toMatchObject({
      state: 'JOB_STATE_SCHEDULED',
    })
    expect(await call('JobService/CancelJob', { jobId: job.id })).toMatchObject({ state: 'JOB_STATE_CANCELLED' })
    expect(await call('JobService/RetryJob', { jobId: job.id })).toMatchObject({ status: 200, run: 2 })
    expect(await call('JobService/CancelJob', { jobId: job.id })).toMatchObject({ state: 'JOB_STATE_CANCELLED' })
    expect(await call('JobService/ListDeadLetters', { queue: 'default', limit: 10 })).toMatchObject({ status: 200 })

    // What was published by hand is a log like any other, and can be streamed by hand too.
    const seen = await place.run(['monitor', '--no-follow', String(jobId)])
    expect(seen.stdout).toBe('by hand\n')
    const streamed = await stream('EventService/StreamEvents', { jobId, fromSequence: 2 })
    expect(streamed).toMatchObject([
      { attempt: 1, event: { sequence: '2', output: { output: btoa('by hand\n'), stream: 'STREAM_STDOUT' } } },
      { event: { sequence: '3', type: 'EVENT_TYPE_PROCESS_END' } },
      { event: { attemptEnded: { attempt: 1, lastSequence: '3', complete: true } } },
      { event: { jobEnded: { state: 'JOB_STATE_COMPLETED', result: { value: { answer: 42 } } } } },
      {},
    ])
  })

  test.each([
    ['M02 no token', 401, 'unauthenticated', { authorization: '' }],
    ['M02 a wrong token', 401, 'unauthenticated', { authorization: 'Bearer nobody' }],
    ['M04 another site', 403, 'permission_denied', { origin: 'https://evil.example' }],
  ])('%s is refused with %i', async (_, status, code, headers) => {
    expect(await call('JobService/ListJobs', {}, headers)).toMatchObject({ status, code })
  })

  test('a fault says what it is, in words and as data', async () => {
    const unknown = await call('JobService/GetJob', { jobId: '01890000-0000-7000-8000-000000000000' })
    expect(unknown).toMatchObject({ status: 404, code: 'not_found' })
    expect(JSON.stringify(unknown['details'])).toContain('JOB_UNKNOWN')
    expect(await call('JobService/GetJob', { jbId: 'x' })).toMatchObject({ status: 400, code: 'invalid_argument' })
  })

  test('health can be asked for without a token', async () => {
    for (const path of ['/healthz', '/readyz']) expect((await fetch(`${server.address}${path}`)).status).toBe(200)
  })
})

test('a stock gRPC client enqueues, works and streams', async () => {
  const headers = { Authorization: `Bearer ${token}` }
  const transport = createGrpcTransport({ baseUrl: server.address })
  const jobs = createClient(JobService, transport)
  const events = createClient(EventService, transport)
  const workers = createClient(WorkerService, transport)
  const params = { kind: { case: 'command' as const, value: { argv: ['true'] } } }
  const { jobId } = await jobs.enqueueJob({ queue: 'default', params }, { headers })
  // A call may come back with nothing: it met the message of a job that was cancelled meanwhile.
  const taken = await eventually(async () => {
    const { jobs: some } = await workers.dequeueJobs({ queue: 'default', workerId: 'w', waitMs: 1_000 }, { headers })
    return some[0]
  })
  const { taskToken } = taken
  const output = { output: Buffer.from('hello\n'), stream: 1 }
  await workers.publishEvents(
    {
      taskToken,
      events: [
        { sequence: 1n, type: EventType.PROCESS_START, data: { case: 'processStart', value: { attempt: 1 } } },
        { sequence: 2n, type: EventType.OUTPUT, data: { case: 'output', value: output } },
      ],
    },
    { headers },
  )
  const seen: string[] = []
  for await (const { event } of events.streamEvents({ jobId }, { headers })) {
    seen.push(event?.data.case ?? '')
    // Live: the job ends only because what was published before has arrived.
    if (event?.data.case === 'output')
      await workers.completeJob({ taskToken, outcome: { case: 'done', value: {} } }, { headers })
  }
  expect(seen).toEqual(['processStart', 'output', 'processEnd', 'attemptEnded', 'jobEnded'])
  expect((await jobs.getJob({ jobId }, { headers })).job?.state).toBe(JobState.COMPLETED)
})

test('buf curl, which knows only the schema, enqueues and streams', async () => {
  const buf = async (method: string, body: object): Promise<readonly Record<string, unknown>[]> => {
    const { stdout } = await promisify(execFile)(join(checkout, 'node_modules', '.bin', 'buf'), [
      ...['curl', '--schema', join(checkout, 'api'), '--protocol', 'grpc', '--http2-prior-knowledge'],
      ...['--header', `Authorization: Bearer ${token}`, '--data', JSON.stringify(body)],
      `${server.address}/millrace.v1.${method}`,
    ])
    // One object after the other, each over several lines or on one.
    return JSON.parse(`[${stdout.trim().replaceAll(/\}\s*\n\{/g, '},{')}]`)
  }
  const [made] = await buf('JobService/EnqueueJob', command('true'))
  const jobId = String(made?.['jobId'])
  expect(await buf('JobService/CancelJob', { jobId })).toEqual([{ state: 'JOB_STATE_CANCELLED' }])
  const events = await buf('EventService/StreamEvents', { jobId })
  expect(events).toMatchObject([{ event: { jobEnded: { state: 'JOB_STATE_CANCELLED' } } }])
})
