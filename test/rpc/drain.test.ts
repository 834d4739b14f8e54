import { connect as connectHttp2 } from 'node:http2'
import { connect } from 'node:net'
import { Code, ConnectError } from '@connectrpc/connect'
import { describe, expect, test } from 'vitest'
import { ErrorInfoSchema } from '../../api/gen/millrace/v1/service_pb.js'
import { createVirtualClock, type VirtualClock } from '../../src/sim/virtual-clock.ts'
import { clients, curl, eventually, jobsPath, json, type RigOptions, startRig, transportNames } from './rig.ts'
import { commandOf } from './wire-params.ts'

const aCommand = commandOf(['true'])
const turn = () => new Promise(setImmediate)

/** A store whose `get` answers when it is told to. */
const blocked = () => {
  let arrived: () => void = () => {}
  let goOn: () => void = () => {}
  const isAsked = new Promise<void>((resolve) => {
    arrived = resolve
  })
  const mayAnswer = new Promise<void>((resolve) => {
    goOn = resolve
  })
  const over: NonNullable<RigOptions['over']> = ({ store }) => ({
    store: {
      ...store,
      get: async (jobId) => {
        arrived()
        await mayAnswer
        return store.get(jobId)
      },
    },
  })
  return { over, isAsked, goOn }
}

const stopped = async (clock: VirtualClock, stop: Promise<void>) => {
  let isOver = false
  const startedAt = clock.monotonic()
  void stop.then(() => {
    isOver = true
  })
  while (!isOver) {
    await clock.advance(100)
    await turn()
  }
  return clock.monotonic() - startedAt
}

describe('A15 a server that stops', () => {
  test.each(transportNames)('finishes what is under way and refuses what comes, before any write: %s', async (name) => {
    const { over, isAsked, goOn } = blocked()
    const rig = await startRig({ over })
    const { jobs } = clients(rig, name)
    const { jobId } = await jobs.enqueueJob({ params: aCommand })
    const underWay = jobs.getJob({ jobId })
    await isAsked
    const stop = rig.server.stop()
    const late = await jobs.enqueueJob({ params: aCommand }).catch(ConnectError.from)
    expect(late).toMatchObject({ code: Code.Unavailable })
    expect((late as ConnectError).findDetails(ErrorInfoSchema)[0]).toMatchObject({
      code: 'SERVER_DRAINING',
      retryable: true,
      retryAfterMs: 1_000n,
    })
    const ready = await curl(rig, '/readyz', { method: 'GET' })
    expect([ready.status, JSON.parse(ready.text)]).toEqual([503, { ok: false, reason: 'draining' }])
    expect((await curl(rig, '/healthz', { method: 'GET' })).status).toBe(200)
    goOn()
    expect((await underWay).job?.id).toBe(jobId)
    await stop
    expect((await rig.runtime.store.list({ limit: 10 })).jobs).toHaveLength(1)
    await expect(curl(rig, '/healthz', { method: 'GET' })).rejects.toThrow('ECONNREFUSED')
  })

  test('ends waits for jobs at once, and a job that came in the last moment is handed out', async () => {
    let waits = 0
    const rig = await startRig({
      over: ({ worker }) => ({
        worker: {
          ...worker,
          claim: async (request) => {
            waits += 1
            const claims = await worker.claim({ ...request, waitMs: 0 })
            if (request.signal?.aborted === false)
              await new Promise((resolve) => request.signal?.addEventListener('abort', resolve))
            return claims
          },
        },
      }),
    })
    const { workers, jobs } = clients(rig)
    const { jobId } = await jobs.enqueueJob({ params: aCommand })
    const lucky = workers.dequeueJobs({ workerId: 'w1', waitMs: 60_000 })
    await eventually(() => waits).toBe(1)
    const waiting = workers.dequeueJobs({ workerId: 'w2', waitMs: 60_000 }).catch(ConnectError.from)
    await eventually(() => waits).toBe(2)
    await rig.server.stop()
    expect(await waiting).toMatchObject({ code: Code.Unavailable })
    expect((await lucky).jobs[0]?.job?.id).toBe(jobId)
  })

  test('does not wait for ever: not for calls, not for connections', async () => {
    const clock = createVirtualClock()
    const { over, isAsked } = blocked()
    const rig = await startRig({ over, deps: { clock }, options: { drainMs: 5_000 } })
    const jobId = '01890a5d-ac96-774b-bcce-b302099a8057'
    const stuck = clients(rig).jobs.getJob({ jobId }).catch(ConnectError.from)
    const stuckToo = clients(rig, 'Connect over HTTP/1.1').jobs.getJob({ jobId }).catch(ConnectError.from)
    const silent = connect(rig.port, '127.0.0.1')
    silent.on('error', () => {})
    await isAsked
    const tookMs = await stopped(clock, rig.server.stop())
    expect(tookMs).toBeGreaterThanOrEqual(5_000)
    expect(tookMs).toBeLessThan(7_000)
    expect(await stuck).toBeInstanceOf(ConnectError)
    expect(await stuckToo).toBeInstanceOf(ConnectError)
    silent.destroy()
  })

  test('closes connections that do nothing, of both protocols, and stopping twice is stopping once', async () => {
    const rig = await startRig()
    const idle = connectHttp2(rig.baseUrl)
    await new Promise((resolve) => idle.once('remoteSettings', resolve))
    const isClosed = new Promise((resolve) => idle.once('close', resolve))
    const silent = connect(rig.port, '127.0.0.1')
    silent.on('error', () => {})
    const isSilentClosed = new Promise((resolve) => silent.once('close', resolve))
    await new Promise((resolve) => silent.once('connect', resolve))
    expect((await curl(rig, jobsPath('ListJobs'), { headers: json, body: '{}' })).status).toBe(200)
    await Promise.all([rig.server.stop(), rig.server.stop()])
    await Promise.all([isClosed, isSilentClosed])
    await rig.server.stop()
  })
})
