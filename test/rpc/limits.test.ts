import { connect as connectHttp2, constants } from 'node:http2'
import { connect, type Socket } from 'node:net'
import { gzipSync } from 'node:zlib'
import { create, toBinary } from '@bufbuild/protobuf'
import fc from 'fast-check'
import { describe, expect, onTestFinished, test } from 'vitest'
import { EnqueueJobRequestSchema } from '../../api/gen/millrace/v1/service_pb.js'
import { createDepthScan } from '../../src/rpc/json-depth.ts'
import { createVirtualClock } from '../../src/sim/virtual-clock.ts'
import { clients, curl, eventually, jobsPath, json, startRig, token } from './rig.ts'
import { commandOf } from './wire-params.ts'

const enqueue = jobsPath('EnqueueJob')
const listed = jobsPath('ListJobs')
const turn = () => new Promise(setImmediate)
const handler = (input: string) => `{"params":{"handler":{"name":"x","input":${input}}}}`

const dial = (port: number): Socket => {
  const socket = connect(port, '127.0.0.1')
  socket.on('error', () => {})
  onTestFinished(() => void socket.destroy())
  return socket
}
const closed = (socket: Socket): Promise<string> => {
  let text = ''
  socket.on('data', (part) => {
    text += String(part)
  })
  return new Promise((resolve) => socket.on('close', () => resolve(text)))
}
const head = (more = '') =>
  `POST ${listed} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${token}\r\nContent-Type: application/json\r\n${more}`

describe('M14 requests that are too much', () => {
  test('a body without end is refused after the limit and the connection closed, in constant memory', async () => {
    const rig = await startRig({ options: { messageBytesMax: 65_536 } })
    const socket = dial(rig.port)
    const answer = closed(socket)
    socket.write(head('Transfer-Encoding: chunked\r\n\r\n'))
    const chunk = Buffer.concat([Buffer.from('4000\r\n'), Buffer.alloc(0x4000, 0x20), Buffer.from('\r\n')])
    let sent = 0
    while (!socket.destroyed && sent < 256 * 1_024 * 1_024) {
      sent += chunk.length
      if (!socket.write(chunk)) await new Promise((resolve) => socket.once('drain', resolve).once('close', resolve))
      await turn()
    }
    expect(await answer).toContain('resource_exhausted')
    expect(sent).toBeLessThan(64 * 1_024 * 1_024)
  })

  test.each(['gRPC over h2c', 'Connect over HTTP/1.1', 'Connect over h2c', 'gRPC-Web over HTTP/1.1'])(
    'a message over the limit is refused by name, and the next call goes on: %s',
    async (name) => {
      const rig = await startRig({ options: { messageBytesMax: 65_536 } })
      const { jobs } = clients(rig, name)
      const params = commandOf(['x'.repeat(100_000)])
      await expect(jobs.enqueueJob({ params })).rejects.toThrow('[resource_exhausted]')
      expect((await jobs.listJobs({})).jobs).toEqual([])
    },
  )

  test('the limit is 4 MiB unless somebody says otherwise', async () => {
    const rig = await startRig()
    const body = handler(`"${'x'.repeat(4 * 1_024 * 1_024)}"`)
    expect((await curl(rig, enqueue, { headers: json, body })).status).toBe(429)
  })

  test.each([
    ['arrays', '['.repeat(200_000) + ']'.repeat(200_000)],
    ['objects', `${'{"a":'.repeat(100_000)}1${'}'.repeat(100_000)}`],
    ['arrays that never end', '['.repeat(1_000_000)],
    ['just over the limit', '['.repeat(98) + ']'.repeat(98)],
  ])('nesting is refused before anything is parsed: %s', async (_, input) => {
    const rig = await startRig()
    const answer = await curl(rig, enqueue, { headers: json, body: handler(input) })
    expect(answer.status).toBe(400)
    expect(JSON.parse(answer.text)).toMatchObject({
      code: 'invalid_argument',
      message: 'request: is nested more than 100 deep',
    })
  })

  test('what the door lets pass is for the store to judge, and brackets within text are text', async () => {
    const rig = await startRig()
    const deep = await curl(rig, enqueue, { headers: json, body: handler('['.repeat(80) + ']'.repeat(80)) })
    expect(JSON.parse(deep.text).message).toBe('params.handler.input: is nested more than 64 deep')
    const text = `"${'[{'.repeat(1_000)}\\"[["`
    expect((await curl(rig, enqueue, { headers: json, body: handler(text) })).status).toBe(200)
  })

  test('nesting in binary is refused too, and costs no more than the call', async () => {
    const rig = await startRig()
    const answer = await curl(rig, enqueue, {
      headers: { ...json, 'content-type': 'application/proto' },
      body: deepBinary(100_000),
    })
    expect(answer.status).toBeGreaterThanOrEqual(400)
    const shallow = await curl(rig, enqueue, {
      headers: { ...json, 'content-type': 'application/proto' },
      body: deepBinary(200),
    })
    expect(JSON.parse(shallow.text)).toMatchObject({ code: 'invalid_argument' })
    expect((await curl(rig, '/healthz', { method: 'GET' })).status).toBe(200)
  })

  test('a million values are refused, and compressed requests are not even unpacked', async () => {
    const rig = await startRig()
    const many = await curl(rig, enqueue, { headers: json, body: handler(`[${'1,'.repeat(1_000_000)}1]`) })
    expect(JSON.parse(many.text)).toMatchObject({ code: 'invalid_argument' })
    const bomb = gzipSync(Buffer.alloc(32 * 1_024 * 1_024))
    const answer = await curl(rig, enqueue, { headers: { ...json, 'content-encoding': 'gzip' }, body: bomb })
    expect(JSON.parse(answer.text)).toMatchObject({ code: 'unimplemented' })
  })

  test('depth is told from the bytes, however they are cut, with envelopes and without', () => {
    const depthOf = (value: unknown): number =>
      typeof value === 'object' && value !== null ? 1 + Math.max(0, ...Object.values(value).map(depthOf)) : 0
    fc.assert(
      fc.property(
        fc.array(fc.jsonValue(), { minLength: 1, maxLength: 3 }),
        fc.integer({ min: 1, max: 7 }),
        (values, step) => {
          const bare = Buffer.from(JSON.stringify(values))
          const enveloped = Buffer.concat(
            values.flatMap((value) => {
              const bytes = Buffer.from(JSON.stringify(value))
              const length = Buffer.alloc(5)
              length.writeUInt32BE(bytes.length, 1)
              return [length, bytes]
            }),
          )
          const scan = (bytes: Buffer, form: 'bare' | 'enveloped') => {
            const depth = createDepthScan(form)
            let deepest = 0
            for (let at = 0; at < bytes.length; at += step) deepest = depth(bytes.subarray(at, at + step))
            return deepest
          }
          expect(scan(bare, 'bare')).toBe(depthOf(values))
          expect(scan(enveloped, 'enveloped')).toBe(Math.max(...values.map(depthOf)))
        },
      ),
    )
  })
})

describe('M15 connections that only cost', () => {
  test.each([
    ['says nothing', ''],
    ['says half of what begins HTTP/2', 'PRI * HTTP'],
  ])('one that %s is closed after a while', async (_, text) => {
    const clock = createVirtualClock()
    const rig = await startRig({ deps: { clock }, options: { headersTimeoutMs: 5_000 } })
    const socket = dial(rig.port)
    let isClosed = false
    void closed(socket).then(() => {
      isClosed = true
    })
    socket.write(text)
    while (!isClosed) {
      await clock.advance(1_000)
      await turn()
    }
  })

  test('one that sends its head or its body a byte at a time is closed after a while', async () => {
    const rig = await startRig({ options: { headersTimeoutMs: 300, requestTimeoutMs: 600 } })
    const slow = dial(rig.port)
    const headless = closed(slow)
    slow.write(head())
    expect(await headless).toContain('408')
    const body = dial(rig.port)
    const answer = closed(body)
    body.write(head('Content-Length: 10\r\n\r\n{'))
    expect(await answer).toMatch(/408|deadline_exceeded/)
  })

  test('a call over HTTP/2 whose body does not come is answered after a while', async () => {
    const clock = createVirtualClock()
    const rig = await startRig({ deps: { clock }, options: { requestTimeoutMs: 5_000 } })
    const session = connectHttp2(rig.baseUrl)
    onTestFinished(() => session.destroy())
    const stream = session.request({ ':method': 'POST', ':path': listed, ...json })
    stream.write('{')
    let status: unknown
    stream.on('response', (response) => {
      status = response[':status']
    })
    let text = ''
    stream.on('data', (part) => {
      text += String(part)
    })
    while (!text.includes('}')) {
      await clock.advance(1_000)
      await turn()
    }
    expect(status).toBe(504)
    expect(text).toContain('deadline_exceeded')
  })

  test('a head that is too long is refused, in both protocols', async () => {
    const rig = await startRig()
    const socket = dial(rig.port)
    const answer = closed(socket)
    socket.write(head(`X: ${'x'.repeat(64 * 1_024)}\r\n\r\n`))
    expect(await answer).toContain('431')
    const session = connectHttp2(rig.baseUrl)
    session.on('error', () => {})
    onTestFinished(() => session.destroy())
    const statusOf = (more: Record<string, string>) =>
      new Promise((resolve) => {
        const stream = session.request({ ':method': 'POST', ':path': listed, ...json, ...more })
        stream.on('response', (response) => resolve(response[':status'])).on('error', ({ message }) => resolve(message))
        stream.resume().end('{}')
      })
    // The first call shows that the limits have been exchanged.
    expect(await statusOf({})).toBe(200)
    expect(await statusOf({ x: 'x'.repeat(40_000) })).toContain('ENHANCE_YOUR_CALM')
    expect((await curl(rig, listed, { headers: json, body: '{}' })).status).toBe(200)
  })

  test('calls that are opened only to be abandoned close their connection, and no other', async () => {
    const rig = await startRig({ options: { resetsMax: 50 } })
    const session = connectHttp2(rig.baseUrl)
    session.on('error', () => {})
    let isGone = false
    let farewell: number | undefined
    session.on('goaway', (code) => {
      farewell = code
    })
    session.on('close', () => {
      isGone = true
    })
    let opened = 0
    while (!isGone && opened < 10_000) {
      for (let n = 0; n < 10 && !session.destroyed && !session.closed; n++, opened++) {
        const stream = session.request({ ':method': 'POST', ':path': listed, ...json })
        stream.on('error', () => {})
        stream.close(constants.NGHTTP2_CANCEL)
      }
      await turn()
    }
    expect(isGone).toBe(true)
    expect(farewell).toBe(constants.NGHTTP2_ENHANCE_YOUR_CALM)
    expect((await curl(rig, listed, { headers: json, body: '{}' })).status).toBe(200)
  })

  test('more connections than there is room for are turned away', async () => {
    const rig = await startRig({ options: { connectionsMax: 2 } })
    const first = dial(rig.port)
    const second = dial(rig.port)
    await Promise.all([first, second].map((socket) => new Promise((resolve) => socket.once('connect', resolve))))
    await closed(dial(rig.port))
    expect(first.destroyed).toBe(false)
    first.destroy()
    second.destroy()
    await eventually(() =>
      curl(rig, '/healthz', { method: 'GET' }).then(
        ({ status }) => status,
        () => 0,
      ),
    ).toBe(200)
  })

  test('a session that nobody uses is closed, and one whose caller hung up is not kept', async () => {
    const clock = createVirtualClock()
    const rig = await startRig({ deps: { clock }, options: { idleTimeoutMs: 10_000 } })
    const session = connectHttp2(rig.baseUrl)
    let isGone = false
    session.on('close', () => {
      isGone = true
    })
    await new Promise((resolve) => session.once('connect', resolve))
    while (!isGone) {
      await clock.advance(5_000)
      await turn()
    }
    const half = dial(rig.port)
    half.end('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0')
    await closed(half)
  })

  test('more calls than there is room for are told to come back', async () => {
    const rig = await startRig({ options: { callsMax: 2 } })
    const { workers, jobs } = clients(rig)
    const leaving = new AbortController()
    const waits = ['w1', 'w2'].map((workerId) =>
      workers.dequeueJobs({ workerId, waitMs: 30_000 }, { signal: leaving.signal }).catch(() => {}),
    )
    await eventually(() => jobs.listJobs({}).then(() => 'taken', String)).toContain('[resource_exhausted]')
    leaving.abort()
    await Promise.all(waits)
    await eventually(() => jobs.listJobs({}).then(() => 'taken', String)).toBe('taken')
  })
})

describe('M22 rubbish', () => {
  test('whatever bytes come, the server answers or closes, and goes on', async () => {
    const rig = await startRig()
    const types = [
      'application/proto',
      'application/json',
      'application/grpc',
      'application/grpc-web+proto',
      'application/connect+json',
      'application/connect+proto',
    ]
    const paths = [
      enqueue,
      listed,
      '/millrace.v1.WorkerService/PublishEvents',
      '/millrace.v1.EventService/StreamEvents',
    ]
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(...types),
        fc.constantFrom(...paths),
        fc.uint8Array({ maxLength: 400 }),
        async (type, path, body) => {
          const answer = await curl(rig, path, { headers: { ...json, 'content-type': type }, body })
          expect(answer.status).toBeGreaterThanOrEqual(200)
          expect(answer.status).toBeLessThan(600)
        },
      ),
      { numRuns: 300 },
    )
    expect((await curl(rig, listed, { headers: json, body: '{}' })).status).toBe(200)
  })

  test('messages that are almost right are answered, never with what the machine thought of them', async () => {
    const rig = await startRig()
    const good = toBinary(
      EnqueueJobRequestSchema,
      create(EnqueueJobRequestSchema, {
        queue: 'default',
        params: { kind: { case: 'command', value: { argv: ['a'], env: { A: 'b' } } } },
        delayMs: 5n,
      }),
    )
    await fc.assert(
      fc.asyncProperty(fc.nat(good.length - 1), fc.nat(255), fc.nat(good.length), async (at, byte, cut) => {
        const body = good.slice(0, Math.max(cut, at + 1))
        body[at] = byte
        const answer = await curl(rig, enqueue, { headers: { ...json, 'content-type': 'application/proto' }, body })
        if (answer.status !== 200) expect(JSON.parse(answer.text)).toHaveProperty('code')
      }),
      { numRuns: 300 },
    )
    expect(rig.events.filter(({ name }) => name === 'warning')).toEqual([])
  })

  // A length that no frame has, then the type of one: Node answers, and forgets to close.
  const falseSettings = Uint8Array.of(0x0e, 0x2f, 0xb2, 0x04, 0xee, 0x1c, 0x25, 0xba, 0x80, 0x88, 0x34)

  test('bytes that are no HTTP at all close their connection and no other', async () => {
    const rig = await startRig({ options: { headersTimeoutMs: 500 } })
    await fc.assert(
      fc.asyncProperty(fc.uint8Array({ minLength: 1, maxLength: 200 }), fc.boolean(), async (bytes, asHttp2) => {
        const socket = connect(rig.port, '127.0.0.1')
        socket.on('error', () => {})
        const gone = closed(socket)
        if (asHttp2) socket.write('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')
        socket.end(bytes)
        await gone
      }),
      { numRuns: 100, examples: [[falseSettings, true]] },
    )
    expect((await curl(rig, listed, { headers: json, body: '{}' })).status).toBe(200)
  })
})

/** A request whose input is a list in a list in a list. */
const deepBinary = (depth: number): Buffer => {
  const varint = (value: number): number[] => (value > 127 ? [(value & 127) | 128, ...varint(value >>> 7)] : [value])
  const parts: number[][] = [[0x20, 1]]
  let length = 2
  const wrap = (tag: number) => {
    const before = [tag, ...varint(length)]
    parts.push(before)
    length += before.length
  }
  for (let level = 0; level < depth; level++) {
    wrap(0x0a)
    wrap(0x32)
  }
  for (let field = 0; field < 3; field++) wrap(0x12)
  return Buffer.from(parts.reverse().flat())
}
