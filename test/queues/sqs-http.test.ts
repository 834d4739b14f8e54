import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { afterEach, describe, expect, test } from 'vitest'
import { systemClock } from '../../src/kernel/clock.ts'
import type { Received } from '../../src/queues/port.ts'
import { queueFaultOf } from '../../src/queues/sqs/translate.ts'
import { openSqs } from '../../src/queues/sqs.ts'
import { createSeededRandom } from '../../src/sim/seeded-random.ts'
import { createVirtualClock, settle } from '../../src/sim/virtual-clock.ts'
import { connectionTo } from './sqs-server.ts'

type Answer = (input: Record<string, unknown>) => unknown

const ends: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const end of ends.splice(0)) await end()
})

/** A server that speaks the protocol as the test likes. `hang` as an answer means none, ever. */
const hang = Symbol('no answer')
const serve = async (answers: Record<string, Answer>) => {
  const seen: { verb: string; input: Record<string, unknown>; socket: Socket }[] = []
  const sockets = new Set<Socket>()
  const heard = new EventTarget()
  const handle = async (request: IncomingMessage, response: ServerResponse) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const verb = String(request.headers['x-amz-target']).replace('AmazonSQS.', '')
    const input = JSON.parse(Buffer.concat(chunks).toString()) as Record<string, unknown>
    seen.push({ verb, input, socket: request.socket })
    heard.dispatchEvent(new Event('call'))
    const answer = answers[verb]?.(input) ?? {}
    if (answer === hang) return
    const { status = 200, ...body } = answer as { status?: number }
    response.writeHead(status, { 'content-type': 'application/x-amz-json-1.0' }).end(JSON.stringify(body))
  }
  const server = createServer((request, response) => void handle(request, response))
  server.on('connection', (socket) => {
    sockets.add(socket)
    socket.on('error', () => {})
    socket.on('close', () => sockets.delete(socket))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  ends.push(async () => {
    for (const socket of sockets) socket.destroy()
    server.close()
    await once(server, 'close')
  })
  /** Resolves when so many calls of that kind have come. */
  const calls = async (which: (call: (typeof seen)[number]) => boolean, count: number) => {
    while (seen.filter(which).length < count) await once(heard as never, 'call')
    return seen.filter(which)
  }
  return { endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, seen, calls }
}

const urls = { high: 'http://q/1/high', normal: 'http://q/1/normal', low: 'http://q/1/low', dead: 'http://q/1/dead' }
const isLong = ({ verb, input }: { verb: string; input: Record<string, unknown> }) =>
  verb === 'ReceiveMessage' && Number(input['WaitTimeSeconds']) > 0

describe('a service at the end of a wire', () => {
  test('B12 a long poll that is never answered ends by our own deadline, and the next one uses another connection', async () => {
    const server = await serve({ ReceiveMessage: (input) => (Number(input['WaitTimeSeconds']) > 0 ? hang : {}) })
    const clock = createVirtualClock()
    const queue = await openSqs(
      { clock, random: createSeededRandom(1) },
      { ...connectionTo(server.endpoint), queues: { mail: urls } },
    )
    ends.unshift(() => queue.close())
    const first = queue.receive('mail', { max: 1, waitMs: 20_000 }).catch((error: unknown) => error)
    const stuck = await server.calls(isLong, 3)
    const closed = Promise.all(stuck.map(({ socket }) => once(socket, 'close')))
    await clock.advance(30_000)
    expect(await first).toMatchObject({ code: 'QUEUE_UNAVAILABLE', retry: 'later' })
    await closed
    await clock.advance(20_000)
    const second = queue.receive('mail', { max: 1, waitMs: 20_000 }).catch((error: unknown) => error)
    const again = (await server.calls(isLong, 6)).slice(3)
    for (const { socket } of again) expect(stuck.map((call) => call.socket)).not.toContain(socket)
    await queue.close()
    expect(await second).toEqual([])
    await settle()
    expect(clock.timers).toBe(0)
  })

  test('B16 messages can be finished and sent while every connection for receiving is busy', async () => {
    const MD5OfBody = createHash('md5').update('x').digest('hex')
    const message = { MessageId: '1', Body: 'x', MD5OfBody, ReceiptHandle: 'handle' }
    let given = false
    const server = await serve({
      ReceiveMessage: (input) => {
        if (Number(input['WaitTimeSeconds']) > 0) return hang
        if (given || input['QueueUrl'] !== urls.normal) return {}
        given = true
        return { Messages: [message] }
      },
    })
    const queue = await openSqs(
      { clock: systemClock, random: createSeededRandom(1) },
      { ...connectionTo(server.endpoint), queues: { mail: urls }, pollSockets: 3, sendSockets: 2 },
    )
    ends.unshift(() => queue.close())
    const received = await queue.receive('mail', { max: 1, waitMs: 0 })
    expect(received).toHaveLength(1)
    const controller = new AbortController()
    const ask = { max: 1, waitMs: 20_000, signal: controller.signal }
    const waiting = [queue.receive('mail', ask)]
    await server.calls(isLong, 3)
    for (let more = 0; more < 5; more++) waiting.push(queue.receive('mail', ask))
    await queue.finish(received as readonly Received[])
    expect(
      await queue.send([{ message: { jobId: 'a', queue: 'mail', priority: 'low', attempt: 0 }, notBefore: 0 }]),
    ).toEqual([undefined])
    expect(server.seen.filter(isLong)).toHaveLength(3)
    controller.abort()
    expect((await Promise.all(waiting)).flat()).toEqual([])
  })

  test('a service that fails is asked again by us and not by the library', async () => {
    let calls = 0
    const server = await serve({
      SendMessageBatch: () => {
        calls += 1
        return calls < 3
          ? { status: 503, __type: 'ServiceUnavailable', message: 'later' }
          : { Successful: [], Failed: [] }
      },
    })
    const events: unknown[] = []
    const queue = await openSqs(
      { clock: systemClock, random: createSeededRandom(1), emit: (event) => events.push(event) },
      { ...connectionTo(server.endpoint), queues: { mail: urls }, retry: { attemptsMax: 5, baseMs: 1, capMs: 1 } },
    )
    ends.unshift(() => queue.close())
    const message = { jobId: 'a', queue: 'mail', priority: 'low', attempt: 0 } as const
    expect(await queue.send([{ message, notBefore: 0 }])).toEqual([undefined])
    expect(server.seen).toHaveLength(3)
    expect(events).toHaveLength(2)
  })

  test('a server that is not there is an unavailable queue', async () => {
    const queue = await openSqs(
      { clock: systemClock, random: createSeededRandom(1) },
      { ...connectionTo('http://127.0.0.1:1'), prefix: 'p-', retry: { attemptsMax: 1, baseMs: 1, capMs: 1 } },
    )
    const message = { jobId: 'a', queue: 'mail', priority: 'low', attempt: 0 } as const
    expect(await queue.send([{ message, notBefore: 0 }])).toMatchObject([{ code: 'QUEUE_UNAVAILABLE' }])
    await queue.close()
  })
})

describe("the service's errors in our words", () => {
  const error = (name: string, httpStatusCode?: number) =>
    Object.assign(new Error('text'), { name, $metadata: { httpStatusCode } })
  test.each([
    ['RequestThrottled', 400, 'QUEUE_THROTTLED'],
    ['com.amazonaws.sqs#RequestThrottled', 400, 'QUEUE_THROTTLED'],
    ['ThrottlingException', 400, 'QUEUE_THROTTLED'],
    ['OverLimit', 403, 'QUEUE_THROTTLED'],
    ['Whatever', 429, 'QUEUE_THROTTLED'],
    ['InternalError', 500, 'QUEUE_UNAVAILABLE'],
    ['ServiceUnavailable', 503, 'QUEUE_UNAVAILABLE'],
    ['ECONNRESET', undefined, 'QUEUE_UNAVAILABLE'],
    ['ExpiredToken', 403, 'QUEUE_UNAVAILABLE'],
    ['CredentialsProviderError', undefined, 'QUEUE_UNAVAILABLE'],
    ['QueueDoesNotExist', 400, 'QUEUE_REFUSED'],
    ['AccessDenied', 403, 'QUEUE_REFUSED'],
    ['InvalidClientTokenId', 403, 'QUEUE_REFUSED'],
  ])('%s (%s) is %s', (name, status, code) => {
    const original = error(name, status)
    const fault = queueFaultOf(original)
    expect(fault.code).toBe(code)
    expect(fault.cause).toBe(original)
    expect(queueFaultOf(fault)).toBe(fault)
  })
  test.each([['text'], [undefined], [null], [7]])('%s thrown by a library is still a fault', (thrown) => {
    expect(queueFaultOf(thrown).code).toBe('QUEUE_UNAVAILABLE')
  })
})
