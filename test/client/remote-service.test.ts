import { Code, ConnectError } from '@connectrpc/connect'
import { describe, expect, test } from 'vitest'
import { JobState } from '../../api/gen/millrace/v1/job_pb.js'
import { type CompleteJobRequest, ErrorInfoSchema, WorkerService } from '../../api/gen/millrace/v1/service_pb.js'
import type { Claim, Outcome } from '../../src/jobs/job.ts'
import { createSigner } from '../../src/jobs/signer.ts'
import { createTokens, type Tokens } from '../../src/jobs/tokens.ts'
import type { WorkerService as Service } from '../../src/worker/service.ts'
import { batchItem } from './model-log.ts'
import { createRig } from './rig.ts'

const key = (id: string) => ({ id, secret: Buffer.alloc(32, id) })
const jobId = '01900000-0000-7000-8000-000000000001'
const hold = { jobId, queue: 'default', attempt: 3 }
const leaseMs = 60_000
const refused = (code: Code, fault: string) =>
  new ConnectError('no', code, undefined, [{ desc: ErrorInfoSchema, value: { code: fault, message: 'no' } }])

/** A server with real task tokens, which remembers what it was told. */
const createServer = () => {
  const told: { readonly verb: string; readonly token: string }[] = []
  const completed: CompleteJobRequest[] = []
  const lose: string[] = []
  let isOver = false
  let tokens: Tokens
  const rotate = (...ids: string[]) => {
    tokens = createTokens({ clock: rig.clock, signer: createSigner(ids.map(key)) })
  }
  const check = (verb: string, token: string) => {
    told.push({ verb, token })
    try {
      expect(tokens.verify(token)).toEqual(hold)
    } catch {
      throw refused(Code.PermissionDenied, 'TOKEN_REFUSED')
    }
    if (isOver) throw refused(Code.FailedPrecondition, 'CLAIM_LOST')
    if (lose[0] === verb) throw new ConnectError('the answer was lost', lose.shift() ? Code.Aborted : Code.Unknown)
  }
  const rig = createRig((router) => {
    router.service(WorkerService, {
      dequeueJobs: (request, { signal }) => {
        told.push({ verb: `dequeue ${request.queue} ${request.maxJobs} ${request.workerId}`, token: '' })
        if (request.waitMs > 0)
          return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
        const job = {
          id: jobId,
          queue: 'default',
          state: JobState.RUNNING,
          attempt: 3,
          params: { kind: { case: 'handler' as const, value: { name: 'mail' } } },
          execution: { leaseMs, heartbeatMs: 20_000, graceMs: 10_000 },
        }
        return { jobs: [{ job, taskToken: tokens.issue(hold, leaseMs) }] }
      },
      updateJobVisibility: ({ taskToken }) => {
        check('renew', taskToken)
        return { taskToken: tokens.issue(hold, leaseMs), cancelRequested: true }
      },
      publishEvents: ({ taskToken }) => {
        check('publish', taskToken)
        return { watchedUntil: { seconds: 1_750_000_060n, nanos: 0 } }
      },
      completeJob: (request) => {
        check('complete', request.taskToken)
        completed.push(request)
        return { state: JobState.SCHEDULED, notBefore: { seconds: 5n, nanos: 0 } }
      },
      releaseJob: ({ taskToken }) => {
        check('release', taskToken)
        return { state: JobState.SCHEDULED }
      },
    })
  })
  rotate('k1')
  return { ...rig, told, completed, lose, rotate, end: () => (isOver = true) }
}

const claimOne = async ({
  service,
  run,
}: {
  service: Service
  run: ReturnType<typeof createRig>['run']
}): Promise<Claim> => {
  const [claim] = await run(service.claim({ queue: 'default', workerId: 'w1', max: 4, waitMs: 0 }))
  if (!claim) throw new Error('nothing was claimed')
  return claim
}

const closing = { output: [batchItem(2, 3)], end: { ...batchItem(5, 1), type: 4 as const } }

describe('a worker on another machine', () => {
  test('claims, renews, publishes and settles with holds alone', async () => {
    const server = createServer()
    const { service, run, told, completed } = server
    const claim = await claimOne(server)
    expect(claim).toMatchObject({ hold, job: { id: jobId, state: 'RUNNING', execution: { leaseMs } } })
    expect(claim.job.params).toEqual({ kind: 'handler', name: 'mail', input: null })
    expect(await run(service.renew(hold))).toEqual({ cancelRequested: true, watchedUntil: undefined })
    expect(await run(service.publish(hold, [batchItem(1, 1)]))).toEqual({
      cancelRequested: false,
      watchedUntil: 1_750_000_060_000,
    })
    const settled = await run(service.settle(hold, { kind: 'done', result: { a: [1, null] } }, closing))
    expect(settled).toEqual({ state: 'SCHEDULED', notBefore: 5_000 })
    expect(told.map(({ verb }) => verb)).toEqual(['dequeue default 4 w1', 'renew', 'publish', 'complete'])
    expect(completed[0]?.items.map(({ sequence, endSequence }) => [sequence, endSequence])).toEqual([
      [2n, 4n],
      [5n, 5n],
    ])
  })

  test('every outcome travels as what it is', async () => {
    const outcomes: Outcome[] = [
      { kind: 'done' },
      { kind: 'done', result: null },
      { kind: 'failed', error: 'exit 1' },
      { kind: 'giveUp', error: 'never' },
      { kind: 'later', inMs: 5_000 },
      { kind: 'cancelled' },
    ]
    const server = createServer()
    for (const outcome of outcomes) {
      await claimOne(server)
      await server.run(server.service.settle(hold, outcome, closing))
    }
    expect(server.completed.map(({ outcome }) => outcome)).toMatchObject([
      { case: 'done', value: {} },
      { case: 'done', value: { result: { value: { kind: { case: 'nullValue' } } } } },
      { case: 'failed', value: { error: 'exit 1' } },
      { case: 'giveUp', value: { error: 'never' } },
      { case: 'later', value: { inMs: 5_000n } },
      { case: 'cancelled' },
    ])
    expect(server.completed[0]?.outcome.value).not.toHaveProperty('result')
  })

  test('more output than one call takes is published in several, in order, and the end comes with the outcome', async () => {
    const server = createServer()
    const { service, run, told, completed } = server
    await claimOne(server)
    const large = (first: number) => ({ ...batchItem(first, 1), payload: new Uint8Array(900_000) })
    await run(service.publish(hold, [1, 2, 3, 4, 5].map(large)))
    expect(told.slice(1).map(({ verb }) => verb)).toEqual(['publish', 'publish', 'publish'])
    await run(service.settle(hold, { kind: 'done' }, { output: [6, 7, 8].map(large), end: batchItem(9, 1) }))
    expect(told.slice(4).map(({ verb }) => verb)).toEqual(['publish', 'complete'])
    expect(completed[0]?.items.map(({ sequence }) => sequence)).toEqual([8n, 9n])
  })

  test('C15 the signing key is replaced in mid job: each heartbeat brings a token, and the newest is shown', async () => {
    const server = createServer()
    const { service, run, told, rotate } = server
    await claimOne(server)
    rotate('k2', 'k1')
    await run(service.renew(hold))
    // The old key is gone for good now; only the token of the heartbeat is good.
    rotate('k2')
    await run(service.publish(hold, [batchItem(1, 1)]))
    expect(await run(service.settle(hold, { kind: 'done' }, closing))).toMatchObject({ state: 'SCHEDULED' })
    const [, renewed, published, completed] = told.map(({ token }) => token)
    expect(published).not.toBe(renewed)
    expect(completed).toBe(published)
  })

  test('C15 a token that is refused ends the attempt, as a claim that is lost does', async () => {
    const server = createServer()
    const { service, run, rotate, told } = server
    await claimOne(server)
    rotate('k9')
    const over = { code: 'CLAIM_LOST', retry: 'never', jobId, cause: { code: 'TOKEN_REFUSED' } }
    await expect(run(service.renew(hold))).rejects.toMatchObject(over)
    // Nobody is asked any more: there is no token to show.
    await expect(run(service.publish(hold, []))).rejects.toMatchObject({ code: 'CLAIM_LOST', jobId })
    expect(told).toHaveLength(2)
  })

  test('a claim that is lost is said with the code that workers branch on', async () => {
    const server = createServer()
    await claimOne(server)
    server.end()
    await expect(server.run(server.service.settle(hold, { kind: 'done' }, closing))).rejects.toMatchObject({
      code: 'CLAIM_LOST',
      retry: 'never',
      jobId,
    })
  })

  test('heartbeats, publishing and settling are repeated when their answers are lost', async () => {
    const server = createServer()
    const { service, run, told, lose } = server
    await claimOne(server)
    lose.push('renew', 'publish', 'complete')
    await run(service.renew(hold))
    await run(service.publish(hold, [batchItem(1, 1)]))
    await run(service.settle(hold, { kind: 'failed', error: 'x' }, closing))
    expect(told.slice(1).map(({ verb }) => verb)).toEqual([
      'renew',
      'renew',
      'publish',
      'publish',
      'complete',
      'complete',
    ])
  })

  test('a claim that waits ends with nothing when it is aborted, and is never asked twice', async () => {
    const { service, told, clock } = createServer()
    const stop = new AbortController()
    const waiting = service.claim({ queue: 'default', workerId: 'w1', max: 1, waitMs: 20_000, signal: stop.signal })
    await clock.advance(19_000)
    stop.abort()
    expect(await waiting).toEqual([])
    expect(told).toHaveLength(1)
    expect(clock.timers).toBe(0)
  })

  test('a claim is not repeated when its answer is lost: the worker decides when to ask again', async () => {
    const { service, run, told } = createServer()
    const late = run(service.claim({ queue: 'default', workerId: 'w1', max: 1, waitMs: 20_000 }))
    await expect(late).rejects.toMatchObject({ code: 'UNREACHABLE', retry: 'later' })
    expect(told).toHaveLength(1)
  })
})
