import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Writable } from 'node:stream'
import { Code, ConnectError } from '@connectrpc/connect'
import { describe, expect, test } from 'vitest'
import { ErrorInfoSchema } from '../../api/gen/millrace/v1/service_pb.js'
import { loadCatalogues } from '../../scripts/reference.ts'
import * as jobFaults from '../../src/jobs/faults.ts'
import { Fault } from '../../src/kernel/fault.ts'
import { codes, toConnectError } from '../../src/rpc/to-connect-error.ts'
import { createLogger, logEvents } from '../../src/telemetry/logger.ts'
import { clients, curl, jobsPath, json, startRig, transportNames } from './rig.ts'
import { commandOf } from './wire-params.ts'

const jobId = '01890a5d-ac96-774b-bcce-b302099a8057'
const aCommand = commandOf(['true'])
const caught = async (call: Promise<unknown>): Promise<ConnectError> => {
  try {
    await call
  } catch (error) {
    return ConnectError.from(error)
  }
  throw new Error('the call was not refused')
}
const infoOf = (error: ConnectError) => error.findDetails(ErrorInfoSchema)[0]

describe('R1.18 faults as errors of the API', () => {
  test('every code of every catalogue has a place in the mapping, and nothing else has', async () => {
    const catalogues = await loadCatalogues(join(import.meta.dirname, '..', '..'))
    // What only ever happens on the caller's side does not travel.
    const isOurs = ({ file }: { readonly file: string }) => !/^src\/(cli|client|provision)\//.test(file)
    const known = catalogues.filter(isOurs).flatMap(({ entries }) => Object.keys(entries))
    expect(known.length).toBeGreaterThan(20)
    expect(known.filter((code) => codes[code] === undefined)).toEqual([])
    expect(Object.keys(codes).filter((code) => !known.includes(code))).toEqual([])
  })

  test.each([
    [new jobFaults.InputInvalid('queue', 'x'), Code.InvalidArgument],
    [new jobFaults.CursorRefused(), Code.InvalidArgument],
    [new jobFaults.QueueUnknown('q'), Code.NotFound],
    [new jobFaults.JobUnknown(jobId), Code.NotFound],
    [new jobFaults.RequestReused('r', jobId), Code.AlreadyExists],
    [new jobFaults.ClaimLost(jobId, 1), Code.FailedPrecondition],
    [new jobFaults.JobNotReady('x'), Code.FailedPrecondition],
    [new jobFaults.TokenRefused(), Code.PermissionDenied],
    [new jobFaults.StoreBusy('x'), Code.ResourceExhausted],
  ])('%s', (fault, code) => {
    expect(toConnectError(fault)).toMatchObject({ code })
  })

  test('a fault that nobody mapped is internal, and says no more than its code', () => {
    class Strange extends Fault {
      readonly code = 'STRANGE'
      readonly retry = 'never'
    }
    const error = toConnectError(new Strange('arn:aws:secret'))
    expect(error).toMatchObject({ code: Code.Internal })
    expect(error.message).not.toContain('arn')
    expect(infoOf(error)).toMatchObject({ code: 'STRANGE', message: 'the server failed; its log says more' })
  })

  test.each(transportNames)('travel with everything they know: %s', async (name) => {
    const rig = await startRig()
    const { jobs } = clients(rig, name)
    const unknown = await caught(jobs.getJob({ jobId }))
    expect(unknown).toMatchObject({ code: Code.NotFound })
    expect(infoOf(unknown)).toMatchObject({ code: 'JOB_UNKNOWN', field: 'jobId', retryable: false })
    const { jobId: first } = await jobs.enqueueJob({ params: aCommand, requestId: 'once' })
    const other = commandOf(['false'])
    const reused = await caught(jobs.enqueueJob({ params: other, requestId: 'once' }))
    expect(reused).toMatchObject({ code: Code.AlreadyExists })
    expect(infoOf(reused)).toMatchObject({ code: 'REQUEST_REUSED', field: 'requestId', jobId: first })
  })

  test.each(transportNames)('L07 a store that is full says when to come back: %s', async (name) => {
    const busy = new jobFaults.StoreBusy('the store cannot take this now', { retryAfterMs: 1_500 })
    const rig = await startRig({ over: ({ store }) => ({ store: { ...store, enqueue: () => Promise.reject(busy) } }) })
    const error = await caught(clients(rig, name).jobs.enqueueJob({ params: aCommand }))
    expect(error).toMatchObject({ code: Code.ResourceExhausted })
    expect(error.metadata.get('retry-after')).toBe('2')
    expect(infoOf(error)).toMatchObject({ code: 'STORE_BUSY', retryable: true, retryAfterMs: 1_500n })
  })

  test('M10 M13 what is no fault tells the caller nothing, and the log all of it', async () => {
    const secret = 'password=hunter2'
    const rig = await startRig({
      over: ({ store }) => ({ store: { ...store, get: () => Promise.reject(new TypeError(secret)) } }),
    })
    const answer = await curl(rig, jobsPath('GetJob'), { headers: json, body: JSON.stringify({ jobId }) })
    expect(answer.status).toBe(500)
    expect(JSON.parse(answer.text)).toMatchObject({ code: 'internal', message: 'the server failed; its log says more' })
    expect(answer.text).not.toContain('hunter2')
    expect(rig.events).toContainEqual({ name: 'warning', text: expect.stringContaining(secret) })
    expect(rig.events).toContainEqual(
      expect.objectContaining({ name: 'call.ended', method: 'GetJob', code: 'Internal' }),
    )
  })

  test('M10 nothing that a caller sends can pass for a line of the log', async () => {
    const lines: string[] = []
    const destination = new Writable({
      write: (chunk, _, done) => {
        lines.push(String(chunk))
        done()
      },
    })
    const log = logEvents(createLogger({ level: 'debug' }, destination))
    const forged = 'x\n{"level":60,"msg":"forged"}\n'
    const rig = await startRig({
      over: ({ store }) => ({
        emit: log,
        store: {
          ...store,
          get: () => Promise.reject(new TypeError(forged)),
          cancel: () => Promise.reject(new TypeError(forged)),
        },
      }),
    })
    const { jobs, workers } = clients(rig)
    await caught(jobs.getJob({ jobId: forged }))
    await caught(jobs.enqueueJob({ queue: forged, params: aCommand }))
    await caught(workers.dequeueJobs({ workerId: forged, queue: forged }))
    await curl(rig, `/${encodeURIComponent(forged)}`, { headers: { ...json, 'user-agent': 'a' }, body: forged })
    const written = lines
      .join('')
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line))
    expect(written.length).toBeGreaterThan(2)
    expect(written.map(({ msg }) => msg).filter((msg) => msg !== 'call.ended' && msg !== 'warning')).toEqual([])
  })
})

describe('C14 task tokens over the API', () => {
  test('of another job, queue, attempt or key, cut or old, are refused with one text', async () => {
    const rig = await startRig()
    const { workers, jobs } = clients(rig)
    const { jobId: own } = await jobs.enqueueJob({ params: aCommand })
    const { jobs: [dequeued] = [] } = await workers.dequeueJobs({ workerId: 'w' })
    const good = dequeued?.taskToken ?? ''
    const texts = new Set<string>()
    for (const taskToken of [
      '',
      'x',
      good.slice(0, -1),
      `${good}A`,
      good.replace(/^\w+/, 'other'),
      good.toUpperCase(),
    ]) {
      for (const verb of ['updateJobVisibility', 'completeJob', 'releaseJob', 'publishEvents'] as const) {
        const error = await caught((workers[verb] as (request: object) => Promise<unknown>)({ taskToken }))
        expect(error).toMatchObject({ code: Code.PermissionDenied })
        expect(infoOf(error)).toMatchObject({ code: 'TOKEN_REFUSED', field: 'taskToken' })
        texts.add(error.message)
      }
    }
    expect([...texts]).toEqual(['[permission_denied] the task token is not valid'])
    // Genuine, but of an attempt that is not the job's: the fence, not the signature.
    const overtaken = rig.runtime.tokens.issue({ jobId: own, queue: 'default', attempt: 2 }, 60_000)
    const fenced = await caught(workers.updateJobVisibility({ taskToken: overtaken }))
    expect(fenced).toMatchObject({ code: Code.FailedPrecondition })
    expect(infoOf(fenced)).toMatchObject({ code: 'CLAIM_LOST', jobId: own })
  })

  test('M07 a token is useless once its attempt is over', async () => {
    const { workers, jobs } = clients(await startRig())
    await jobs.enqueueJob({ params: aCommand })
    const { jobs: [dequeued] = [] } = await workers.dequeueJobs({ workerId: 'w' })
    const taskToken = dequeued?.taskToken ?? ''
    await workers.completeJob({ taskToken, outcome: { case: 'done', value: {} } })
    for (const again of [
      workers.updateJobVisibility({ taskToken }),
      workers.publishEvents({ taskToken }),
      workers.releaseJob({ taskToken }),
    ]) {
      expect(await caught(again)).toMatchObject({ code: Code.FailedPrecondition })
    }
  })
})

describe('M21 page tokens', () => {
  test('that were changed, or are of another listing, are refused', async () => {
    const { jobs } = clients(await startRig())
    for (let n = 0; n < 3; n++) await jobs.enqueueJob({ params: aCommand })
    const { nextPageToken } = await jobs.listJobs({ pageSize: 1 })
    expect(await jobs.listJobs({ pageSize: 5, pageToken: nextPageToken })).toMatchObject({ jobs: [{}, {}] })
    for (const request of [
      { pageToken: `${nextPageToken}A` },
      { pageToken: nextPageToken.slice(0, -2) },
      { pageToken: nextPageToken, queue: 'other' },
      { pageToken: nextPageToken, ascending: true },
    ]) {
      const error = await caught(jobs.listJobs(request))
      expect(error).toMatchObject({ code: Code.InvalidArgument })
      expect(infoOf(error)).toMatchObject({ code: 'CURSOR_REFUSED', field: 'pageToken' })
    }
  })
})

test('the mapping is the only one: nothing else in src/rpc makes an error of the API', () => {
  const folder = join(import.meta.dirname, '..', '..', 'src', 'rpc')
  const makers = readdirSync(folder).filter((file) =>
    readFileSync(join(folder, file), 'utf8').includes('new ConnectError('),
  )
  expect(makers).toEqual(['to-connect-error.ts'])
})
