import { crc32 } from 'node:zlib'
import { create } from '@bufbuild/protobuf'
import { describe, expect, test } from 'vitest'
import { EventType, JobEventSchema } from '../../api/gen/millrace/v1/event_pb.js'
import { JobState, Priority } from '../../api/gen/millrace/v1/job_pb.js'
import type { StoredItem } from '../../src/log/event.ts'
import { fromItem } from '../../src/rpc/translate-event.ts'
import {
  aBatch,
  clients,
  curl,
  encodeEvent,
  eventually,
  jobsPath,
  json,
  scripted,
  startRig,
  transportNames,
} from './rig.ts'
import { commandOf } from './wire-params.ts'

const aCommand = commandOf(['echo', 'hello'], { A: 'b' })
const endItem = (sequence: number, error = ''): StoredItem =>
  encodeEvent(
    create(JobEventSchema, {
      sequence: BigInt(sequence),
      type: EventType.PROCESS_END,
      timestamp: { seconds: 5n },
      data: { case: 'processEnd', value: { exitCode: 0, error } },
    }),
  )

describe.each(transportNames)('%s', (name) => {
  test('R1.10 R1.11 R1.12 R1.13 R1.15 carries a job from enqueue to its end', async () => {
    const rig = await startRig()
    const { jobs, workers } = clients(rig, name)
    const made = await jobs.enqueueJob({ params: aCommand, requestId: 'r1', priority: Priority.HIGH })
    expect(made).toMatchObject({ created: true, state: JobState.SCHEDULED })
    const again = await jobs.enqueueJob({ params: aCommand, requestId: 'r1', priority: Priority.HIGH })
    expect(again).toMatchObject({ created: false, jobId: made.jobId })

    const { jobs: [dequeued] = [] } = await workers.dequeueJobs({ queue: 'default', workerId: 'w1', waitMs: 1_000 })
    expect(dequeued?.job).toMatchObject({
      id: made.jobId,
      state: JobState.RUNNING,
      attempt: 1,
      params: { kind: aCommand.kind },
    })
    const taskToken = dequeued?.taskToken ?? ''
    const beat = await workers.updateJobVisibility({ taskToken })
    expect(beat.cancelRequested).toBe(false)
    await workers.publishEvents({ taskToken: beat.taskToken, items: [fromItem(aBatch(1, ['a', 'b']))] })
    expect(await jobs.cancelJob({ jobId: made.jobId })).toMatchObject({ requested: true, state: JobState.RUNNING })
    expect((await workers.updateJobVisibility({ taskToken: beat.taskToken })).cancelRequested).toBe(true)
    const settled = await workers.completeJob({
      taskToken: beat.taskToken,
      outcome: { case: 'done', value: { result: { value: { kind: { case: 'numberValue', value: 7 } } } } },
      items: [fromItem(endItem(3))],
    })
    expect(settled.state).toBe(JobState.COMPLETED)
    const { job } = await jobs.getJob({ jobId: made.jobId })
    expect(job).toMatchObject({ state: JobState.COMPLETED, result: { value: { kind: { value: 7 } } } })
    expect(rig.events.filter(({ name }) => name === 'call.ended')).toContainEqual(
      expect.objectContaining({ service: 'millrace.v1.WorkerService', method: 'CompleteJob', code: 'Ok' }),
    )
  })

  test('R1.17 streams what the follower gives, event by event and as stored', async () => {
    const batch = aBatch(1, ['a', 'b', 'c'])
    const rig = await startRig({
      follower: scripted([
        { attempt: 1, item: batch },
        { attempt: 1, item: endItem(4) },
        { attempt: 1, marker: { kind: 'attemptEnded', lastSequence: 4, complete: true } },
        { attempt: 1, marker: { kind: 'jobEnded', state: 'COMPLETED', result: { exitCode: 0 }, error: undefined } },
      ]),
    })
    const { events } = clients(rig, name)
    const jobId = '01890a5d-ac96-774b-bcce-b302099a8057'
    const seen: unknown[] = []
    for await (const { attempt, event } of events.streamEvents({ jobId, fromSequence: 2n })) {
      seen.push([attempt, event?.sequence, event?.type, event?.data.case])
    }
    expect(seen).toEqual([
      [1, 2n, EventType.OUTPUT, 'output'],
      [1, 3n, EventType.OUTPUT, 'output'],
      [1, 4n, EventType.PROCESS_END, 'processEnd'],
      [1, 0n, EventType.ATTEMPT_ENDED, 'attemptEnded'],
      [1, 0n, EventType.JOB_ENDED, 'jobEnded'],
    ])
    expect(rig.followed[0]).toMatchObject({ jobId, fromSequence: 2 })

    const raw: unknown[] = []
    for await (const { entry } of events.streamEventBatches({ jobId })) raw.push(entry)
    expect(raw).toHaveLength(4)
    expect(raw[0]).toMatchObject({ case: 'item', value: { sequence: 1n, endSequence: 3n, crc: batch.crc } })
    const [{ value }] = raw as [{ value: { payload: Uint8Array } }]
    expect(Buffer.from(value.payload).equals(batch.payload)).toBe(true)
  })
})

describe('jobs', () => {
  test('a plain POST of JSON is enough for every unary call', async () => {
    const rig = await startRig()
    const body = JSON.stringify({ params: { handler: { name: 'greet', input: { to: ['x', 1, null, true] } } } })
    const made = await curl(rig, jobsPath('EnqueueJob'), { headers: json, body })
    expect(made.status).toBe(200)
    const { jobId } = JSON.parse(made.text)
    const got = await curl(rig, jobsPath('GetJob'), { headers: json, body: JSON.stringify({ jobId }) })
    expect(JSON.parse(got.text).job).toMatchObject({
      params: { handler: { name: 'greet', input: { to: ['x', 1, null, true] } } },
    })
    const listed = await curl(rig, jobsPath('ListJobs'), { headers: json, body: '{}' })
    expect(JSON.parse(listed.text).jobs).toHaveLength(1)
  })

  test('a name that is spelled wrongly is refused, not ignored', async () => {
    const rig = await startRig()
    const answer = await curl(rig, jobsPath('GetJob'), { headers: json, body: '{"job":"x"}' })
    expect(answer).toMatchObject({ status: 400 })
    expect(answer.text).toContain('invalid_argument')
  })

  test('many jobs have an answer each, and what cannot be read is refused alone', async () => {
    const { jobs } = clients(await startRig())
    const { answers } = await jobs.enqueueJobs({
      jobs: [
        { params: aCommand },
        { params: aCommand, priority: 9 as Priority },
        { params: aCommand, queue: 'nowhere' },
        {},
      ],
    })
    expect(
      answers.map(({ outcome }) =>
        outcome.case === 'refused' ? [outcome.value.code, outcome.value.field] : outcome.case,
      ),
    ).toEqual(['made', ['INPUT_INVALID', 'priority'], ['QUEUE_UNKNOWN', 'queue'], ['INPUT_INVALID', 'params']])
  })

  test('what a request says about retries and execution is stored, and zeros are left to the server', async () => {
    const { jobs } = clients(await startRig())
    const { jobId } = await jobs.enqueueJob({
      params: aCommand,
      maxAttempts: 3,
      delayMs: 60_000n,
      timeoutMs: 5_000,
      execution: { leaseMs: 90_000, batching: { maxBatchSize: 10 }, maxOutputBytes: 1_000n },
    })
    const { job } = await jobs.getJob({ jobId })
    expect(job).toMatchObject({
      timeoutMs: 5_000,
      retry: { maxAttempts: 3 },
      execution: {
        leaseMs: 90_000,
        heartbeatMs: 20_000,
        maxOutputBytes: 1_000n,
        batching: { maxBatchSize: 10, batchSizeBound: 2_000 },
      },
    })
    const at = (time: { seconds: bigint } | undefined) => Number(time?.seconds ?? 0n)
    expect(at(job?.notBefore) - at(job?.createdAt)).toBeGreaterThanOrEqual(59)
  })

  test('retry with run 0 takes whichever run there is', async () => {
    const { jobs } = clients(await startRig())
    const { jobId } = await jobs.enqueueJob({ params: aCommand })
    await jobs.cancelJob({ jobId })
    expect(await jobs.retryJob({ jobId })).toMatchObject({ run: 2 })
    await jobs.cancelJob({ jobId })
    expect(await jobs.retryJob({ jobId, run: 2 })).toMatchObject({ run: 3 })
  })

  test('dead letters are listed as they lie there', async () => {
    const asked: unknown[] = []
    const deadLetters = async (...args: unknown[]) => {
      asked.push(args)
      return [{ body: '{"half":', reason: 'the message cannot be read' }]
    }
    const { jobs } = clients(await startRig({ deps: { deadLetters } }))
    const { letters } = await jobs.listDeadLetters({ queue: 'other' })
    expect(letters).toMatchObject([{ body: '{"half":', reason: 'the message cannot be read' }])
    expect(asked).toEqual([['other', 100]])
  })
})

describe('workers', () => {
  const claim = async () => {
    const rig = await startRig()
    const all = clients(rig)
    const { jobId } = await all.jobs.enqueueJob({ params: aCommand, maxAttempts: 2 })
    const { jobs: [dequeued] = [] } = await all.workers.dequeueJobs({ workerId: 'w1', waitMs: 1_000 })
    return { rig, ...all, jobId, taskToken: dequeued?.taskToken ?? '' }
  }

  test('an attempt whose worker sends no PROCESS_END gets one, behind what it sent', async () => {
    const { workers, taskToken, rig, jobId } = await claim()
    const settled = await workers.completeJob({
      taskToken,
      outcome: { case: 'failed', value: { error: 'no luck' } },
      items: [fromItem(aBatch(1, ['x', 'y']))],
    })
    expect(settled.state).toBe(JobState.SCHEDULED)
    expect(settled.notBefore).toBeDefined()
    expect(await rig.runtime.store.get(jobId)).toMatchObject({ failedAttempts: 1 })
  })

  test('a completion that is repeated is the same completion, and a release gives the job back', async () => {
    const { workers, taskToken } = await claim()
    const outcome = { case: 'cancelled', value: {} } as const
    const request = { taskToken, outcome, items: [fromItem(endItem(1))] }
    expect(await workers.completeJob(request)).toMatchObject({ state: JobState.CANCELLED })
    expect(await workers.completeJob(request)).toMatchObject({ state: JobState.CANCELLED })
    const other = await claim()
    expect(await other.workers.releaseJob({ taskToken: other.taskToken })).toMatchObject({ state: JobState.SCHEDULED })
  })

  test('R1.15 events that the server is to encode get its time if they have none', async () => {
    const { workers, taskToken, rig } = await claim()
    await workers.publishEvents({
      taskToken,
      events: [
        { sequence: 1n, type: EventType.OUTPUT, data: { case: 'output', value: { output: Buffer.from('a\n') } } },
      ],
    })
    expect(rig.events).toContainEqual(
      expect.objectContaining({ name: 'call.ended', method: 'PublishEvents', code: 'Ok' }),
    )
  })

  test.each([
    ['a checksum that does not fit', { crc: 1 }, 'items[0].crc'],
    ['a type that is never stored', { eventType: 101 as EventType }, 'items[0].eventType'],
    ['an unknown encoding', { encoding: 9 as never }, 'items[0].encoding'],
    ['E23 a sequence beyond 2^53', { sequence: 2n ** 53n }, 'items[0].sequence'],
    ['E23 a sequence of 2^63 - 1', { endSequence: 2n ** 63n - 1n }, 'items[0].endSequence'],
    ['a negative sequence', { sequence: -1n }, 'items[0].sequence'],
  ])('an item with %s is refused by its field', async (_, change, field) => {
    const { workers, taskToken } = await claim()
    const payload = Buffer.from('x')
    const item = { ...fromItem(aBatch(1, ['x'])), payload, crc: crc32(payload), ...change }
    const refused = workers.publishEvents({ taskToken, items: [item] })
    await expect(refused).rejects.toThrow(field)
    await expect(refused).rejects.toThrow('invalid_argument')
  })

  test('M22 events that contradict themselves are refused by their field', async () => {
    const { workers, taskToken } = await claim()
    const send = (event: object) => workers.publishEvents({ taskToken, events: [event as never] })
    await expect(send({ sequence: 1n, type: EventType.JOB_ENDED })).rejects.toThrow('events[0].type')
    await expect(send({ sequence: 1n, type: EventType.OUTPUT })).rejects.toThrow('events[0].data')
    const progress = { case: 'progress', value: { fraction: Number.NaN } }
    await expect(send({ sequence: 1n, type: EventType.PROGRESS, data: progress })).rejects.toThrow(
      'events[0].progress.fraction',
    )
    await expect(
      send({ sequence: 0n, type: EventType.PROCESS_ERROR, data: { case: 'processError', value: {} } }),
    ).rejects.toThrow('events[0].sequence')
  })

  test('a completion without an outcome, or with something behind PROCESS_END, is refused', async () => {
    const { workers, taskToken } = await claim()
    await expect(workers.completeJob({ taskToken })).rejects.toThrow('outcome')
    const items = [fromItem(endItem(1)), fromItem(aBatch(2, ['x']))]
    await expect(workers.completeJob({ taskToken, outcome: { case: 'cancelled', value: {} }, items })).rejects.toThrow(
      'PROCESS_END',
    )
  })

  test('a worker that leaves while it waits, or whose deadline passes, keeps no job', async () => {
    const rig = await startRig()
    const { jobs, workers } = clients(rig)
    await expect(workers.dequeueJobs({ workerId: 'w1', waitMs: 60_000 }, { timeoutMs: 100 })).rejects.toThrow(
      'deadline_exceeded',
    )
    const { jobId } = await jobs.enqueueJob({ params: aCommand })
    const { jobs: [dequeued] = [] } = await workers.dequeueJobs({ workerId: 'w2', waitMs: 5_000 })
    expect(dequeued?.job).toMatchObject({ id: jobId, attempt: 1 })
  })

  test('jobs that were claimed for somebody who has left are given back at once', async () => {
    const released: string[] = []
    let claimed: () => void = () => {}
    const isClaimed = new Promise<void>((resolve) => {
      claimed = resolve
    })
    const rig = await startRig({
      over: ({ worker }) => ({
        worker: {
          ...worker,
          claim: async (request) => {
            const claims = await worker.claim(request)
            claimed()
            await new Promise((resolve) => request.signal?.addEventListener('abort', resolve))
            return claims
          },
          release: async (hold) => {
            released.push(hold.jobId)
            return worker.release(hold)
          },
        },
      }),
    })
    const { jobs, workers } = clients(rig)
    const { jobId } = await jobs.enqueueJob({ params: aCommand })
    const leaving = new AbortController()
    const call = workers.dequeueJobs({ workerId: 'w1', waitMs: 5_000 }, { signal: leaving.signal })
    await isClaimed
    leaving.abort()
    await expect(call).rejects.toThrow('canceled')
    await eventually(() => released).toEqual([jobId])
    await eventually(async () => (await rig.runtime.store.get(jobId)).state).toBe('SCHEDULED')
  })
})
