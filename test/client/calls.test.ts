import { Code, ConnectError, type ServiceImpl } from '@connectrpc/connect'
import { describe, expect, test } from 'vitest'
import { JobState } from '../../api/gen/millrace/v1/job_pb.js'
import { type ErrorInfo, ErrorInfoSchema, JobService } from '../../api/gen/millrace/v1/service_pb.js'
import { isFault } from '../../src/kernel/fault.ts'
import { collect, createRig } from './rig.ts'

const params = { kind: 'command', argv: ['true'] } as const
const refusal = (code: Code, info: Partial<Omit<ErrorInfo, '$typeName' | '$unknown'>>) =>
  new ConnectError(info.message ?? 'no', code, undefined, [
    { desc: ErrorInfoSchema, value: { message: 'no', ...info } },
  ])

/** A store of jobs by request id, whose answers get lost as often as the script says. */
const createShop = (lost: ('before' | 'after' | 'busy' | undefined)[] = []) => {
  const jobs = new Map<string, string>()
  const seen: string[] = []
  const make = (requestId: string) => {
    const created = !jobs.has(requestId)
    if (created) jobs.set(requestId, `job-${jobs.size + 1}`)
    return { jobId: jobs.get(requestId) as string, state: JobState.SCHEDULED, created }
  }
  const service: Partial<ServiceImpl<typeof JobService>> = {
    enqueueJob: (request) => {
      seen.push(request.requestId)
      const fate = lost.shift()
      if (fate === 'before') throw new ConnectError('refused', Code.Unavailable)
      if (fate === 'busy')
        throw refusal(Code.ResourceExhausted, { code: 'STORE_BUSY', retryable: true, retryAfterMs: 700n })
      const answer = make(request.requestId)
      if (fate === 'after') throw new ConnectError('the connection was lost', Code.Aborted)
      return answer
    },
    enqueueJobs: ({ jobs: asked }) => {
      seen.push(...asked.map(({ requestId }) => requestId))
      const fate = lost.shift()
      const answers = asked.map(({ requestId }, index) =>
        fate === 'busy' && index % 2
          ? {
              outcome: {
                case: 'refused' as const,
                value: {
                  $typeName: 'millrace.v1.ErrorInfo',
                  code: 'STORE_BUSY',
                  message: 'no',
                  retryable: true,
                } as ErrorInfo,
              },
            }
          : { outcome: { case: 'made' as const, value: make(requestId) } },
      )
      if (fate === 'after') throw new ConnectError('the connection was lost', Code.Aborted)
      return { answers }
    },
  }
  return { jobs, seen, ...createRig((router) => router.service(JobService, service)) }
}

describe('enqueueing', () => {
  test('A06 A07 an answer that is lost makes no second job: every repetition carries the same request id', async () => {
    const { client, run, jobs, seen } = createShop(['after', 'before', 'after'])
    const answer = await run(client.enqueue({ queue: 'default', params }))
    expect(answer).toMatchObject({ jobId: 'job-1', created: false, state: 'SCHEDULED' })
    expect(jobs.size).toBe(1)
    expect(seen).toHaveLength(4)
    expect(new Set(seen).size).toBe(1)
  })

  test('each call has a request id of its own, unless the caller has one', async () => {
    const { client, run, jobs } = createShop()
    await run(client.enqueue({ queue: 'default', params }))
    await run(client.enqueue({ queue: 'default', params }))
    await run(client.enqueue({ queue: 'default', params, requestId: 'mine' }))
    await run(client.enqueue({ queue: 'default', params, requestId: 'mine' }))
    expect(jobs.size).toBe(3)
    expect([...jobs.keys()]).toContain('mine')
  })

  test('a server that is busy is left alone for as long as it asks', async () => {
    const { client, run, clock } = createShop(['busy', 'busy'])
    await run(client.enqueue({ queue: 'default', params }))
    expect(clock.monotonic()).toBeGreaterThanOrEqual(1_400)
  })

  test('A07 after the deadline the fault carries the request id, and going on with it makes no second job', async () => {
    const { client, run, clock, jobs } = createShop(Array.from({ length: 1_000 }, () => 'after' as const))
    const fault = await run(client.enqueue({ queue: 'default', params }).catch((error: unknown) => error))
    expect(fault).toMatchObject({ code: 'UNREACHABLE', retry: 'later', requestId: [...jobs.keys()][0] })
    expect(clock.monotonic()).toBeLessThanOrEqual(30_000)
    expect(jobs.size).toBe(1)
  })

  test('A07 many: a lost answer and a busy store are repeated job by job, each under its own id', async () => {
    const { client, run, jobs, seen } = createShop(['after', 'busy'])
    const requests = Array.from({ length: 5 }, () => ({ queue: 'default', params }))
    const answers = await run(client.enqueueMany(requests))
    expect(answers.map((answer) => (isFault(answer) ? answer.code : answer.jobId))).toEqual([
      'job-1',
      'job-2',
      'job-3',
      'job-4',
      'job-5',
    ])
    expect(jobs.size).toBe(5)
    // Five, five again, and then only the two that were told to wait.
    expect(seen).toHaveLength(12)
  })

  test('many: more than a call carries is sent in several, and what cannot be written down is refused by itself', async () => {
    const { client, run, jobs } = createShop()
    const large = { kind: 'command', argv: ['echo', 'x'.repeat(200_000)] } as const
    const requests = [
      ...Array.from({ length: 1_500 }, () => ({ queue: 'default', params })),
      { queue: 'default', params, delayMs: 1.5 },
      ...Array.from({ length: 12 }, () => ({ queue: 'default', params: large })),
    ]
    const answers = await run(client.enqueueMany(requests))
    expect(answers).toHaveLength(1_513)
    expect(answers.flatMap((answer, index) => (isFault(answer) ? [[index, answer.code]] : []))).toEqual([
      [1_500, 'INPUT_INVALID'],
    ])
    expect(jobs.size).toBe(1_512)
  })
})

describe('faults of the server', () => {
  const failing = (error: () => ConnectError) => {
    let calls = 0
    const rig = createRig((router) => {
      router.service(JobService, {
        getJob: () => {
          calls += 1
          throw error()
        },
      })
    })
    return { ...rig, calls: () => calls, get: () => rig.run(rig.client.get('x')) }
  }

  test('arrive with everything that callers branch on, and final ones are not repeated', async () => {
    const { get, calls } = failing(() =>
      refusal(Code.AlreadyExists, {
        code: 'REQUEST_REUSED',
        message: 'used',
        field: 'requestId',
        limit: 3,
        jobId: 'j',
      }),
    )
    await expect(get()).rejects.toMatchObject({
      name: 'ServerFault',
      code: 'REQUEST_REUSED',
      message: 'used',
      retry: 'never',
      field: 'requestId',
      limit: 3,
      jobId: 'j',
    })
    expect(calls()).toBe(1)
  })

  test('a missing token is refused with advice', async () => {
    const { get } = failing(() => new ConnectError('no token', Code.Unauthenticated))
    await expect(get()).rejects.toMatchObject({
      code: 'CALL_UNAUTHENTICATED',
      message: expect.stringContaining('token file'),
    })
  })

  test('a probe says soon whether a server is there, and that it knows us', async () => {
    const there = failing(() => refusal(Code.NotFound, { code: 'JOB_UNKNOWN' }))
    await there.run(there.client.probe(1_000))
    const away = failing(() => new ConnectError('gone', Code.Unavailable))
    await expect(away.run(away.client.probe(1_000))).rejects.toMatchObject({ code: 'UNREACHABLE' })
    expect(away.clock.monotonic()).toBeLessThanOrEqual(1_000)
    const strange = failing(() => refusal(Code.Unauthenticated, { code: 'CALL_UNAUTHENTICATED' }))
    await expect(strange.run(strange.client.probe(1_000))).rejects.toMatchObject({ code: 'CALL_UNAUTHENTICATED' })
  })

  test('an answer that no server of ours gives is called by its name', async () => {
    const { get, calls } = failing(() => new ConnectError('not here', Code.Unimplemented))
    await expect(get()).rejects.toMatchObject({ code: 'SERVER_FOREIGN', retry: 'never' })
    expect(calls()).toBe(1)
  })

  test('a server that does not answer is tried again within the deadline, and told how long we wait', async () => {
    const limits: (number | undefined)[] = []
    const { client, run, clock } = createRig((router) => {
      router.service(JobService, {
        getJob: (_, { signal, requestHeader }) => {
          limits.push(Number(requestHeader.get('Connect-Timeout-Ms')))
          return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
        },
      })
    })
    await expect(run(client.get('x'))).rejects.toMatchObject({ code: 'UNREACHABLE' })
    expect(limits.length).toBeGreaterThanOrEqual(3)
    expect(limits[0]).toBe(10_000)
    expect(clock.monotonic()).toBeLessThanOrEqual(30_000)
    expect(clock.timers).toBe(0)
  })

  test('a client that was closed asks nobody', async () => {
    const { client, run, get, calls } = failing(() => new ConnectError('gone', Code.Unavailable))
    const under = client.get('x')
    client.close()
    await expect(run(under)).rejects.toMatchObject({ code: 'CLIENT_CLOSED' })
    await expect(get()).rejects.toMatchObject({ code: 'CLIENT_CLOSED' })
    expect(calls()).toBeLessThanOrEqual(1)
  })
})

describe('finding jobs', () => {
  const job = (id: string) => ({
    id,
    queue: 'default',
    state: JobState.SCHEDULED,
    run: 4,
    params: { kind: { case: 'command' as const, value: { argv: ['true'] } } },
  })
  /** Pages of at most two, and every second one empty. */
  const listing = (ids: readonly string[]) => {
    const retried: number[] = []
    const rig = createRig((router) => {
      router.service(JobService, {
        getJob: ({ jobId }) => ({ job: job(jobId) }),
        retryJob: ({ run }) => {
          retried.push(run)
          if (retried.length === 1) throw new ConnectError('lost', Code.Aborted)
          return { run: run + 1 }
        },
        listJobs: ({ idPrefix, pageToken }) => {
          const fitting = ids.filter((id) => id.startsWith(idPrefix))
          const [at, isEmpty] = (pageToken || '0 false').split(' ')
          const from = Number(at)
          if (isEmpty === 'true') return { jobs: [], nextPageToken: `${from} false` }
          const next = from + 2 < fitting.length ? `${from + 2} true` : ''
          return { jobs: fitting.slice(from, from + 2).map(job), nextPageToken: next }
        },
      })
    })
    return { ...rig, retried }
  }
  const ids = ['aaaa1', 'aaaa2', 'bbbb1', 'cccc1', 'cccc2', 'cccc3', 'cccc4', 'cccc5']

  test('a listing is walked to its end, over empty pages too', async () => {
    const { client, run } = listing(ids)
    expect((await run(collect(client.list()))).map(({ id }) => id)).toEqual(ids)
    expect((await run(collect(client.list({ idPrefix: 'aaaa' })))).map(({ id }) => id)).toEqual(['aaaa1', 'aaaa2'])
  })

  test('an abbreviated id is resolved if it is unique, and otherwise the candidates are named', async () => {
    const { client, run } = listing(ids)
    expect(await run(client.resolveId('B'))).toBe('bbbb1')
    await expect(run(client.resolveId('aa'))).rejects.toMatchObject({
      code: 'ID_AMBIGUOUS',
      candidates: ['aaaa1', 'aaaa2'],
      message: expect.stringContaining('aaaa1, aaaa2'),
    })
    await expect(run(client.resolveId('dd'))).rejects.toMatchObject({ code: 'JOB_UNKNOWN' })
    await expect(run(client.resolveId(''))).rejects.toMatchObject({ code: 'JOB_UNKNOWN' })
    const whole = '01900000-0000-7000-8000-00000000000F'
    expect(await run(client.resolveId(whole))).toBe(whole.toLowerCase())
  })

  test('the candidates that are named are bounded', async () => {
    const many = listing(Array.from({ length: 40 }, (_, n) => `eeee${n}`))
    const fault = await many.run(many.client.resolveId('e').catch((error: unknown) => error))
    expect(fault).toMatchObject({ code: 'ID_AMBIGUOUS', message: expect.stringMatching(/ and more$/) })
    expect((fault as { candidates: string[] }).candidates).toHaveLength(10)
  })

  test('a job is retried once although the answer was lost: the run that was seen goes along', async () => {
    const { client, run, retried } = listing(ids)
    expect(await run(client.retry('aaaa1'))).toEqual({ run: 5 })
    expect(retried).toEqual([4, 4])
  })
})
