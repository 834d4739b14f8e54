import { mkdtempSync, rmSync } from 'node:fs'
import { createServer as createHttp1Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { HandlerContext } from '@connectrpc/connect'
import { afterEach, describe, expect, test } from 'vitest'
import { JobState } from '../../api/gen/millrace/v1/job_pb.js'
import { EventService, JobService } from '../../api/gen/millrace/v1/service_pb.js'
import { createClient } from '../../src/client/connect.ts'
import { systemClock } from '../../src/kernel/clock.ts'
import { systemRandom } from '../../src/kernel/random.ts'
import { losses, startServer, type TestServer } from './http2-server.ts'
import { batchItem, modelEvents, unpackLines } from './model-log.ts'
import { collect } from './rig.ts'

const jobId = '01900000-0000-7000-8000-000000000001'
/** Pauses are real here; chance that is always small keeps them short. */
const random = { ...systemRandom, next: () => 0.01 }
const params = { kind: 'command', argv: ['true'] } as const
const ends: (() => unknown)[] = []
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end()
})

const serve = async (...given: Parameters<typeof startServer>): Promise<TestServer> => {
  const server = await startServer(...given)
  ends.push(server.stop)
  return server
}

const connect = (address: string, rest: { token?: string; deadlineMs?: number } = {}) => {
  const client = createClient({ address, clock: systemClock, random, ...rest })
  ends.push(client.close)
  return client
}

/** Jobs by request id; calls back before it answers. */
const jobRoutes = (jobs: Map<string, number>, beforeAnswer: (context: HandlerContext) => void) => ({
  enqueueJob: ({ requestId }: { requestId: string }, context: HandlerContext) => {
    const created = !jobs.has(requestId)
    jobs.set(requestId, (jobs.get(requestId) ?? 0) + 1)
    beforeAnswer(context)
    return { jobId, state: JobState.SCHEDULED, created }
  },
})

describe('over a real connection', () => {
  test.each(losses)('A06 A07 one job although the connection is lost before the answer: %s', async (loss) => {
    const jobs = new Map<string, number>()
    let left = 2
    const server = await serve((router) => {
      router.service(
        JobService,
        jobRoutes(jobs, () => {
          left -= 1
          if (left >= 0) server.lose(loss)
        }),
      )
    })
    const answer = await connect(server.address).enqueue({ queue: 'default', params })
    expect(answer).toMatchObject({ jobId, created: false })
    expect([...jobs.values()]).toEqual([3])
    expect(server.connections()).toBe(3)
  })

  test.each(losses)('G03 no gap and no repetition although the connection is lost in mid stream: %s', async (loss) => {
    const attempts = [
      { batches: [5, 5, 5, 5], complete: false },
      { batches: [5, 5], complete: true },
    ]
    const model = modelEvents(attempts, [])
    const seen: (readonly [number, number | string])[] = []
    let wake = () => {}
    const server = await serve((router) => {
      router.service(EventService, {
        ...model,
        // One event at a time: the next one is sent when this one has arrived, so that each loss hits a stream that is under way.
        async *streamEvents(request, context) {
          for await (const message of model.streamEvents(request, context)) {
            yield message
            const hasArrived = () =>
              seen.some(([attempt, what]) => attempt === message.attempt && what === Number(message.event?.sequence))
            while (message.event?.sequence && !hasArrived() && !context.signal.aborted) {
              await new Promise<void>((resolve) => {
                wake = resolve
                context.signal.addEventListener('abort', () => resolve())
              })
            }
          }
        },
      })
    })
    for await (const entry of connect(server.address).follow({ jobId })) {
      seen.push([entry.attempt, 'event' in entry ? entry.event.sequence : entry.marker.kind])
      if (seen.length % 7 === 0) server.lose(loss)
      wake()
    }
    expect(seen).toEqual([
      ...Array.from({ length: 20 }, (_, at) => [1, at + 1]),
      [1, 'attemptEnded'],
      ...Array.from({ length: 10 }, (_, at) => [2, at + 1]),
      [2, 'attemptEnded'],
      [2, 'jobEnded'],
    ])
    expect(server.connections()).toBeGreaterThanOrEqual(4)
  })

  test('G09 a server that restarts finds its followers again by itself', async () => {
    const model = modelEvents([{ batches: [2, 2], complete: true }], [])
    let isLive = () => {}
    const live = new Promise<void>((resolve) => {
      isLive = resolve
    })
    const first = await startServer((router) => {
      router.service(EventService, {
        ...model,
        async *streamEvents(request, context) {
          for await (const message of model.streamEvents(request, context)) {
            yield message
            if (message.event?.sequence === 3n) {
              isLive()
              await new Promise((resolve) => context.signal.addEventListener('abort', resolve))
            }
          }
        },
      })
    })
    const all = collect(connect(first.address).follow({ jobId }))
    await live
    await first.stop()
    const second = await serve((router) => router.service(EventService, model), { port: first.port, host: '127.0.0.1' })
    const seen = (await all).map((entry) => ('event' in entry ? entry.event.sequence : entry.marker.kind))
    expect(seen).toEqual([1, 2, 3, 4, 'attemptEnded', 'jobEnded'])
    expect(second.connections()).toBe(1)
  })

  test('R0.13 stored items arrive byte by byte as they are, large ones too, and nothing is compressed on the way', async () => {
    const item = batchItem(1, 2_000, 'x'.repeat(120))
    const compressions: (string | null)[] = []
    const server = await serve((router) => {
      router.service(EventService, {
        ...modelEvents([], []),
        async *streamEventBatches(_, { requestHeader }) {
          compressions.push(requestHeader.get('connect-accept-encoding'), requestHeader.get('accept-encoding'))
          const value = { ...item, sequence: 1n, endSequence: 2_000n, timestampMs: 7n, eventType: 2 }
          yield { attempt: 1, entry: { case: 'item', value } }
        },
      })
    })
    const [first] = await collect(connect(server.address).followBatches({ jobId, noFollow: true }))
    expect(first).toMatchObject({
      attempt: 1,
      fromSequence: 1,
      item: { sequence: 1, endSequence: 2_000, timestamp: 7 },
    })
    if (!first || !('item' in first)) throw new Error('no item')
    expect(Buffer.from(first.item.payload).equals(item.payload)).toBe(true)
    expect(unpackLines(first.item, 1_999)).toHaveLength(2)
    expect(compressions).toEqual([null, null])
  })

  test('a socket file is an address like any other, and the token goes along', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'millrace-client-'))
    ends.push(() => rmSync(folder, { recursive: true }))
    const shown: (string | null)[] = []
    const jobs = new Map<string, number>()
    const server = await serve(
      (router) => {
        router.service(
          JobService,
          jobRoutes(jobs, ({ requestHeader }) => {
            shown.push(requestHeader.get('Authorization'), requestHeader.get('Host'))
          }),
        )
      },
      { path: join(folder, 's') },
    )
    expect(server.address).toBe(`unix:${join(folder, 's')}`)
    await connect(server.address, { token: 'secret' }).enqueue({ queue: 'default', params })
    expect(shown[0]).toBe('Bearer secret')
    expect(jobs.size).toBe(1)
  })
})

describe('no server of ours', () => {
  const missing = join(tmpdir(), 'millrace-no-such-socket')
  test.each(['http://127.0.0.1:1', `unix:${missing}`])('nobody listens at %s: said with advice', async (address) => {
    await expect(connect(address, { deadlineMs: 300 }).get(jobId)).rejects.toMatchObject({
      code: 'UNREACHABLE',
      message: expect.stringContaining('millrace up'),
    })
  })

  test('something that speaks another protocol is not asked twice', async () => {
    let connections = 0
    const other = createHttp1Server((_, response) => response.end('hello'))
    other.on('connection', () => {
      connections += 1
    })
    await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve))
    ends.push(() => other.close())
    const { port } = other.address() as AddressInfo
    await expect(connect(`http://127.0.0.1:${port}`).get(jobId)).rejects.toMatchObject({ code: 'SERVER_FOREIGN' })
    expect(connections).toBe(1)
  })

  test.each(['', 'localhost:7171', 'ftp://x', 'unix:', 'http://'])("'%s' is no address", (address) => {
    expect(() => connect(address)).toThrow(expect.objectContaining({ code: 'ADDRESS_INVALID' }))
  })
})
