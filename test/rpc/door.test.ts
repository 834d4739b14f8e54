import { mkdtemp, readdir, rename, rm, stat } from 'node:fs/promises'
import { connect as connectHttp2 } from 'node:http2'
import { connect as connectSocket, createServer as createNetServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createConnectTransport } from '@connectrpc/connect-node'
import { describe, expect, onTestFinished, test } from 'vitest'
import { EventService, JobService, WorkerService } from '../../api/gen/millrace/v1/service_pb.js'
import {
  clients,
  clientsOf,
  curl,
  jobsPath,
  json,
  scripted,
  startRig,
  token,
  transportNames,
  transports,
} from './rig.ts'

const call = { headers: json, body: '{}' }
const listed = jobsPath('ListJobs')
const headers = (more: Readonly<Record<string, string>>) => ({ ...call, headers: { ...json, ...more } })

const tempDir = async () => {
  const folder = await mkdtemp(join(tmpdir(), 'mr-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  return folder
}

describe('who may call', () => {
  test('M01 beyond the loopback the server does not even listen without tokens', async () => {
    for (const host of ['0.0.0.0', '::', '192.0.2.1', 'runner.example']) {
      const refused = startRig({ options: { tokens: [], host }, deps: { localToken: token } })
      await expect(refused).rejects.toMatchObject({ code: 'SERVER_UNAUTHENTICATED', field: 'server.tokens' })
    }
    const mixed = startRig({
      options: { tokens: [] },
      listen: [
        { host: '127.0.0.1', port: 0 },
        { host: '0.0.0.0', port: 0 },
      ],
    })
    await expect(mixed).rejects.toMatchObject({ code: 'SERVER_UNAUTHENTICATED' })
    const rig = await startRig({ options: { host: '0.0.0.0' } })
    expect((await curl(rig, listed, call)).status).toBe(200)
  })

  test.each(transportNames)('M02 a call without an accepted token is refused on loopback too: %s', async (name) => {
    const rig = await startRig()
    for (const shown of [undefined, 'x', `${token}x`, token.slice(1)]) {
      const { jobs, events } = clientsOf(transports(rig.baseUrl, shown ?? '')[name] as never)
      await expect(jobs.listJobs({})).rejects.toThrow('[unauthenticated]')
      const read = async () => {
        for await (const _ of events.streamEvents({ jobId: '01890a5d-ac96-774b-bcce-b302099a8057' })) return
      }
      await expect(read()).rejects.toThrow('[unauthenticated]')
    }
    expect(rig.followed).toEqual([])
  })

  test('M02 every method needs it, the token of this machine is as good as a configured one, and several are accepted', async () => {
    const local = 'made-for-this-machine-0123456789'
    const rig = await startRig({
      options: { tokens: [token, 'another-token-0123456789'] },
      deps: { localToken: local },
    })
    const as = (shown: string) => curl(rig, listed, { headers: { ...json, authorization: shown }, body: '{}' })
    for (const shown of [token, 'another-token-0123456789', local])
      expect((await as(`Bearer ${shown}`)).status).toBe(200)
    for (const shown of [
      '',
      token,
      `Basic ${token}`,
      `Bearer ${token} ${token}`,
      'Bearer',
      `Bearer ${token.toUpperCase()}`,
    ]) {
      expect((await as(shown)).status).toBe(401)
    }
    for (const service of [JobService, WorkerService, EventService]) {
      for (const method of service.methods) {
        const streams = method.methodKind !== 'unary'
        const type = streams ? 'application/connect+json' : 'application/json'
        const answer = await curl(rig, `/${service.typeName}/${method.name}`, {
          headers: { 'content-type': type },
          body: '',
        })
        expect([method.name, streams ? answer.text.includes('unauthenticated') : answer.status]).toEqual([
          method.name,
          streams ? true : 401,
        ])
      }
    }
  })

  test('M03 a name that somebody lets point here is refused, whatever else is right', async () => {
    const rig = await startRig({ options: { hosts: ['runner.example'] } })
    for (const host of [
      'evil.example',
      'evil.example:7171',
      'localhost.evil.example',
      '127.0.0.1.nip.example',
      'localhost@evil.example',
    ]) {
      const answer = await curl(rig, listed, headers({ host }))
      expect([host, answer.status]).toEqual([host, 403])
    }
    for (const host of [
      'localhost',
      `LOCALHOST:${rig.port}`,
      '127.0.0.1',
      '[::1]:80',
      'runner.example',
      'Runner.Example:443',
    ]) {
      const answer = await curl(rig, listed, headers({ host }))
      expect([host, answer.status]).toEqual([host, 200])
    }
    expect((await curl(rig, '/healthz', { method: 'GET', headers: { host: 'evil.example' } })).status).toBe(403)
  })

  test('M03 the same over HTTP/2, by authority and by host', async () => {
    const rig = await startRig()
    const session = connectHttp2(rig.baseUrl)
    const status = (head: Record<string, string>) =>
      new Promise<unknown>((resolve, reject) => {
        const stream = session.request({ ':method': 'POST', ':path': listed, ...json, ...head })
        stream.on('response', (response) => resolve(response[':status']))
        stream.on('error', reject)
        stream.resume().end('{}')
      })
    expect(await status({})).toBe(200)
    expect(await status({ ':authority': 'evil.example' })).toBe(403)
    expect(await status({ host: 'evil.example' })).toBe(403)
    session.destroy()
  })

  test('M03 the address that a connection was really made to is no name that could be bent', async () => {
    const rig = await startRig({ options: { host: '0.0.0.0' } })
    expect((await curl(rig, listed, headers({ host: '127.0.0.2' }))).status).toBe(403)
    const answer = await curl(rig, listed, { ...headers({ host: '127.0.0.2' }), host: '127.0.0.2' })
    expect(answer.status).toBe(200)
  })

  test('M04 M05 pages of other sites are refused, for calls and for streams, before anything is read', async () => {
    const rig = await startRig({ follower: scripted([]) })
    const foreign = [
      { origin: 'https://evil.example' },
      { origin: 'null' },
      { origin: `http://127.0.0.1:${rig.port + 1}` },
      { 'sec-fetch-site': 'cross-site' },
      { 'sec-fetch-site': 'same-site' },
    ]
    for (const more of foreign) {
      expect((await curl(rig, listed, headers(more as never))).status).toBe(403)
      const stream = {
        ...headers(more as never),
        headers: { ...json, ...more, 'content-type': 'application/connect+json' },
      }
      expect((await curl(rig, '/millrace.v1.EventService/StreamEvents', stream)).status).toBe(403)
    }
    expect(rig.followed).toEqual([])
    const own = `http://127.0.0.1:${rig.port}`
    expect((await curl(rig, listed, headers({ origin: own, 'sec-fetch-site': 'same-origin' }))).status).toBe(200)
    expect((await curl(rig, listed, headers({ 'sec-fetch-site': 'none' }))).status).toBe(200)
  })

  test('M04 nothing has effects by GET, and types that a form can send are no calls', async () => {
    const rig = await startRig()
    expect(
      (await curl(rig, `${jobsPath('EnqueueJob')}?encoding=json&message={}`, { method: 'GET', headers: json })).status,
    ).toBe(405)
    for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data; boundary=x']) {
      expect((await curl(rig, listed, headers({ 'content-type': type }))).status).toBe(415)
    }
    expect((await curl(rig, '/elsewhere', call)).status).toBe(404)
  })

  test('M06 no answer ever invites another site', async () => {
    const rig = await startRig()
    const answers = [
      await curl(rig, listed, headers({ origin: 'https://evil.example' })),
      await curl(rig, listed, {
        ...headers({ origin: 'https://evil.example', 'access-control-request-method': 'POST' }),
        method: 'OPTIONS',
      }),
      await curl(rig, listed, headers({ origin: `http://127.0.0.1:${rig.port}` })),
      await curl(rig, '/healthz', { method: 'GET' }),
    ]
    expect(answers.map(({ status }) => status)).toEqual([403, 403, 200, 200])
    for (const answer of answers) {
      expect(Object.keys(answer.headers).filter((name) => name.startsWith('access-control'))).toEqual([])
    }
  })
})

describe('health', () => {
  test('needs no token, says why not, and nothing else', async () => {
    let reason: string | undefined
    const rig = await startRig({ deps: { unready: () => reason } })
    const get = async (path: string) => {
      const { status, text } = await curl(rig, path, { method: 'GET' })
      return [status, JSON.parse(text)]
    }
    expect(await get('/healthz')).toEqual([200, { ok: true }])
    expect(await get('/readyz')).toEqual([200, { ok: true }])
    reason = 'the store is out of reach'
    expect(await get('/readyz')).toEqual([503, { ok: false, reason }])
    expect(await get('/healthz')).toEqual([200, { ok: true }])
    expect((await curl(rig, '/readyz', { method: 'POST' })).status).toBe(405)
  })
})

describe('where it listens', () => {
  test('a port and a socket at once, the socket for its owner alone and gone afterwards', async () => {
    const folder = await tempDir()
    const path = join(folder, 'millrace.sock')
    const rig = await startRig({ listen: [{ host: '127.0.0.1', port: 0 }, { path }] })
    expect(rig.server.addresses()).toEqual([{ host: '127.0.0.1', port: rig.port }, { path }])
    expect((await stat(path)).mode & 0o777).toBe(0o600)
    expect(await readdir(folder)).toEqual(['millrace.sock'])
    expect(
      (await curl({ socketPath: path }, listed, { ...call, headers: { ...json, host: 'localhost' } })).status,
    ).toBe(200)
    expect(
      (await curl({ socketPath: path }, listed, { headers: { 'content-type': 'application/json' }, body: '{}' }))
        .status,
    ).toBe(401)
    expect((await curl(rig, listed, call)).status).toBe(200)
    const transport = createConnectTransport({
      baseUrl: 'http://localhost',
      httpVersion: '2',
      nodeOptions: { createConnection: () => connectSocket(path) },
      interceptors: [
        (next) => (request) => {
          request.header.set('authorization', `Bearer ${token}`)
          return next(request)
        },
      ],
    })
    expect(await clientsOf(transport).jobs.listJobs({})).toMatchObject({ jobs: [] })
    await rig.server.stop()
    expect(await readdir(folder)).toEqual([])
  })

  test('a socket that a dead process left is replaced, one that answers is not', async () => {
    const folder = await tempDir()
    const path = join(folder, 's')
    const dead = createNetServer()
    await new Promise<void>((resolve) => dead.listen(join(folder, 'x'), resolve))
    await rename(join(folder, 'x'), path)
    await new Promise((resolve) => dead.close(resolve))
    const rig = await startRig({ listen: [{ path }] })
    expect((await curl({ socketPath: path }, '/healthz', { method: 'GET' })).status).toBe(200)
    await expect(startRig({ listen: [{ path }] })).rejects.toMatchObject({ code: 'ADDRESS_UNUSABLE' })
    expect((await curl({ socketPath: path }, '/healthz', { method: 'GET' })).status).toBe(200)
    await rig.server.stop()
  })

  test('a port that is taken, or a path that is too long, is said, and nothing is left listening', async () => {
    const rig = await startRig()
    const folder = await tempDir()
    const path = join(folder, 's')
    const taken = startRig({ listen: [{ path }, { host: '127.0.0.1', port: rig.port }] })
    await expect(taken).rejects.toMatchObject({
      code: 'ADDRESS_UNUSABLE',
      message: expect.stringContaining('EADDRINUSE'),
    })
    expect(await readdir(folder)).toEqual([])
    await expect(startRig({ listen: [{ path: join(folder, 'x'.repeat(120)) }] })).rejects.toMatchObject({ limit: 100 })
  })
})

describe('M07 the bearer token', () => {
  test('is no task token, and a task token is no bearer token', async () => {
    const rig = await startRig()
    const taskToken = rig.runtime.tokens.issue(
      { jobId: '01890a5d-ac96-774b-bcce-b302099a8057', queue: 'default', attempt: 1 },
      60_000,
    )
    expect((await curl(rig, listed, headers({ authorization: `Bearer ${taskToken}` }))).status).toBe(401)
    await expect(clients(rig).workers.updateJobVisibility({ taskToken: token })).rejects.toThrow('[permission_denied]')
  })
})
