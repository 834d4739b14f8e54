import { request as httpRequest, type IncomingMessage } from 'node:http'
import { connect as connectHttp2 } from 'node:http2'
import { Code, ConnectError } from '@connectrpc/connect'
import { describe, expect, test } from 'vitest'
import { EventType } from '../../api/gen/millrace/v1/event_pb.js'
import { ErrorInfoSchema } from '../../api/gen/millrace/v1/service_pb.js'
import { JobUnknown } from '../../src/jobs/faults.ts'
import type { Follower } from '../../src/log/follower.ts'
import { createVirtualClock, type VirtualClock } from '../../src/sim/virtual-clock.ts'
import { aBatch, clients, eventually, json, scripted, startRig, transportNames } from './rig.ts'

const jobId = '01890a5d-ac96-774b-bcce-b302099a8057'
const turn = () => new Promise(setImmediate)
const caught = async (call: Promise<unknown>): Promise<ConnectError> => {
  try {
    await call
  } catch (error) {
    return ConnectError.from(error)
  }
  throw new Error('the call was not refused')
}
const failing = (jobId: string): AsyncIterable<never> => {
  throw new JobUnknown(jobId)
}
const readAll = async <T>(stream: AsyncIterable<T>): Promise<T[]> => {
  const all: T[] = []
  for await (const one of stream) all.push(one)
  return all
}

/** A log without an end, that counts what was taken of it and says when it was left. */
const endless = (bytes = 16_384) => {
  const line = 'x'.repeat(bytes)
  const seen = { given: 0, left: 0 }
  const follower: Follower = {
    async *follow() {
      try {
        for (;;) {
          seen.given += 1
          yield { attempt: 1, item: aBatch(seen.given, [line]) }
        }
      } finally {
        seen.left += 1
      }
    },
  }
  return { follower, seen }
}

/** Resolves when nothing was given for many turns of the loop: whoever should read has stopped. */
const untilStill = async (seen: { readonly given: number }) => {
  for (let last = -1, quiet = 0; quiet < 200; ) {
    await turn()
    quiet = seen.given > 0 && seen.given === last ? quiet + 1 : 0
    last = seen.given
  }
}

/** What becomes of it while more and more time passes. */
const passing = async <T>(clock: VirtualClock, work: Promise<T>): Promise<T> => {
  let isOver = false
  void work.finally(() => {
    isOver = true
  })
  while (!isOver) {
    await clock.advance(5_000)
    await turn()
  }
  return work
}

const openHttp1 = (port: number): Promise<IncomingMessage> =>
  new Promise((resolve, reject) => {
    const body = JSON.stringify({ jobId })
    const head = Buffer.alloc(5)
    head.writeUInt32BE(body.length, 1)
    const path = '/millrace.v1.EventService/StreamEventBatches'
    const headers = { ...json, 'content-type': 'application/connect+json' }
    const request = httpRequest({ host: '127.0.0.1', port, path, method: 'POST', headers, agent: false }, resolve)
    request.on('error', reject)
    request.end(Buffer.concat([head, Buffer.from(body)]))
  })

const openHttp2 = (baseUrl: string) => {
  const session = connectHttp2(baseUrl)
  session.on('error', () => {})
  const body = JSON.stringify({ jobId })
  const head = Buffer.alloc(5)
  head.writeUInt32BE(body.length, 1)
  const stream = session.request({
    ':method': 'POST',
    ':path': '/millrace.v1.EventService/StreamEventBatches',
    ...json,
    'content-type': 'application/connect+json',
  })
  const ended = new Promise<number>((resolve) => {
    stream.on('error', () => {})
    stream.on('close', () => resolve(stream.rstCode))
  })
  stream.end(Buffer.concat([head, Buffer.from(body)]))
  return { session, stream, ended }
}

describe('G01 G02 readers that do not read', () => {
  test('over HTTP/2 take a bounded amount, cost nothing more, and are cut so that they can resume', async () => {
    const clock = createVirtualClock()
    const { follower, seen } = endless()
    const rig = await startRig({ deps: { clock }, options: { stallMs: 30_000 }, follower })
    const { session, ended } = openHttp2(rig.baseUrl)
    await untilStill(seen)
    // A window of 64 KiB and the buffers of both ends, never the whole log.
    expect(seen.given * 16_384).toBeLessThan(2 * 1_024 * 1_024)
    await clock.advance(29_000)
    expect(seen.left).toBe(0)
    // REFUSED_STREAM, which every client reads as Unavailable.
    expect(await passing(clock, ended)).toBe(7)
    await eventually(() => seen.left).toBe(1)
    expect(rig.events).toContainEqual(
      expect.objectContaining({ name: 'call.ended', method: 'StreamEventBatches', code: 'Unavailable' }),
    )
    session.destroy()
  })

  test('over HTTP/1.1 lose their connection', async () => {
    const clock = createVirtualClock()
    const { follower, seen } = endless(262_144)
    const rig = await startRig({ deps: { clock }, options: { stallMs: 30_000 }, follower })
    const response = await openHttp1(rig.port)
    const lost = new Promise((resolve) => response.on('error', resolve).on('close', resolve))
    await untilStill(seen)
    await passing(clock, eventually(() => seen.left).toBe(1))
    response.resume()
    await lost
  })

  test('a slow reader that takes something now and then is never cut', async () => {
    const clock = createVirtualClock()
    const { follower, seen } = endless()
    const rig = await startRig({ deps: { clock }, options: { stallMs: 30_000 }, follower })
    const { session, stream } = openHttp2(rig.baseUrl)
    for (let round = 0; round < 5; round++) {
      await untilStill(seen)
      await clock.advance(20_000)
      const before = seen.given
      while (seen.given < before + 2) {
        stream.read()
        await turn()
      }
    }
    expect(seen.left).toBe(0)
    session.destroy()
    await eventually(() => seen.left).toBe(1)
  })
})

describe.each(transportNames)('%s', (name) => {
  test('a reader that leaves ends its follower, whether it stands still or waits', async () => {
    const { follower, seen } = endless()
    const rig = await startRig({ follower })
    const leaving = new AbortController()
    const left = async () => {
      for await (const _ of clients(rig, name).events.streamEvents({ jobId }, { signal: leaving.signal })) {
        leaving.abort()
      }
    }
    expect(await caught(left())).toMatchObject({ code: Code.Canceled })
    await eventually(() => seen.left).toBe(1)

    let isOver = false
    const waiting: Follower = {
      async *follow({ signal }) {
        yield { attempt: 1, item: aBatch(1, ['a']) }
        await new Promise((resolve) => signal?.addEventListener('abort', resolve))
        isOver = true
      },
    }
    const other = await startRig({ follower: waiting })
    const leavingToo = new AbortController()
    const leftToo = async () => {
      const { signal } = leavingToo
      for await (const _ of clients(other, name).events.streamEvents({ jobId }, { signal })) leavingToo.abort()
    }
    expect(await caught(leftToo())).toMatchObject({ code: Code.Canceled })
    await eventually(() => isOver).toBe(true)
  })

  test('A15 a stream is ended with an error after which it can be resumed when the server stops', async () => {
    const rig = await startRig({ follower: scripted([{ attempt: 1, item: aBatch(1, ['a']) }, 'wait']) })
    const seen: unknown[] = []
    const read = async () => {
      for await (const { event } of clients(rig, name).events.streamEvents({ jobId })) {
        seen.push(event?.sequence)
        void rig.server.stop()
      }
    }
    const error = await caught(read())
    expect(seen).toEqual([1n])
    expect(error).toMatchObject({ code: Code.Unavailable })
    expect(error.findDetails(ErrorInfoSchema)[0]).toMatchObject({ code: 'SERVER_DRAINING', retryable: true })
    await rig.server.stop()
  })

  test('a deadline ends a stream', async () => {
    const rig = await startRig({ follower: scripted([{ attempt: 1, item: aBatch(1, ['a']) }, 'wait']) })
    const error = await caught(readAll(clients(rig, name).events.streamEvents({ jobId }, { timeoutMs: 200 })))
    expect(error).toMatchObject({ code: Code.DeadlineExceeded })
  })

  test('G06 G13 a follower that fails ends its own stream with its own error', async () => {
    const rig = await startRig({
      follower: {
        async *follow({ jobId }) {
          yield* failing(jobId)
        },
      },
    })
    const error = await caught(readAll(clients(rig, name).events.streamEvents({ jobId })))
    expect(error).toMatchObject({ code: Code.NotFound })
    expect(error.findDetails(ErrorInfoSchema)[0]).toMatchObject({ code: 'JOB_UNKNOWN' })
    expect((await clients(rig, name).jobs.listJobs({})).jobs).toEqual([])
  })
})

describe('what is asked for', () => {
  test('G06 nonsense is refused by its field', async () => {
    const rig = await startRig()
    const { events } = clients(rig)
    const refused = async (request: object, field: string) => {
      const error = await caught(readAll(events.streamEvents(request)))
      expect([error.code, error.findDetails(ErrorInfoSchema)[0]?.field]).toEqual([Code.InvalidArgument, field])
    }
    await refused({ jobId: 'x' }, 'jobId')
    await refused({ jobId, fromSequence: -1n }, 'fromSequence')
    await refused({ jobId, fromSequence: 2n ** 53n }, 'fromSequence')
    await refused({ jobId, fromSequence: 2n ** 63n - 1n }, 'fromSequence')
    await refused({ jobId, types: [1, 42] }, 'types[1]')
    await refused({ jobId, fromTimestamp: { seconds: -5n, nanos: 0 } }, 'fromTimestamp')
    await refused({ jobId, fromTimestamp: { seconds: 5n, nanos: -1 } }, 'fromTimestamp')
    expect(rig.followed).toEqual([])
  })

  test('attempt, sequence, time and the wish not to follow reach the follower', async () => {
    const rig = await startRig()
    const request = {
      jobId,
      attempt: 2,
      fromSequence: 9n,
      fromTimestamp: { seconds: 3n, nanos: 5_000_000 },
      noFollow: true,
    }
    await readAll(clients(rig).events.streamEventBatches(request))
    expect(rig.followed[0]).toMatchObject({ jobId, attempt: 2, fromSequence: 9, fromTimestamp: 3_005, noFollow: true })
    await readAll(clients(rig).events.streamEvents({ jobId }))
    expect(rig.followed[1]).not.toHaveProperty('attempt')
  })

  test('G11 types filter what is stored, never what says how the stream goes on', async () => {
    const rig = await startRig({
      follower: scripted([
        { attempt: 1, item: aBatch(1, ['a', 'b']) },
        { attempt: 1, marker: { kind: 'keepAlive' } },
        { attempt: 1, marker: { kind: 'missing', from: 3, to: 4 } },
        { attempt: 1, marker: { kind: 'trimmed', before: 5 } },
        { attempt: 1, marker: { kind: 'damaged', from: 6, to: 7, reason: 'crc' } },
        { attempt: 1, marker: { kind: 'attemptEnded', lastSequence: 7, complete: false } },
        { attempt: 2, item: aBatch(1, ['c']) },
        { attempt: 2, marker: { kind: 'jobEnded', state: 'FAILED', result: undefined, error: 'no' } },
      ]),
    })
    const { events } = clients(rig)
    const types = async (request: object) =>
      (await readAll(events.streamEvents({ jobId, ...request }))).map(({ attempt, event }) => [attempt, event?.type])
    const markers = [
      EventType.KEEP_ALIVE,
      EventType.MISSING,
      EventType.TRIMMED,
      EventType.DAMAGED,
      EventType.ATTEMPT_ENDED,
    ]
    const told = markers.map((type) => [1, type])
    expect(await types({ types: [EventType.PROGRESS] })).toEqual([...told, [2, EventType.JOB_ENDED]])
    expect(await types({ types: [EventType.OUTPUT], fromSequence: 2n })).toEqual([
      [1, EventType.OUTPUT],
      ...told,
      // The sequence was one of the first attempt.
      [2, EventType.OUTPUT],
      [2, EventType.JOB_ENDED],
    ])
    const last = (await readAll(events.streamEvents({ jobId }))).at(-1)
    expect(last?.event?.data).toMatchObject({ case: 'jobEnded', value: { state: 4, result: { error: 'no' } } })
  })

  test('G12 keep-alives pass at once, and so does what comes behind them', async () => {
    let more: () => void = () => {}
    const follower: Follower = {
      async *follow() {
        yield { attempt: 1, marker: { kind: 'keepAlive' } }
        await new Promise<void>((resolve) => {
          more = resolve
        })
        yield { attempt: 1, item: aBatch(1, ['a']) }
      },
    }
    const seen: unknown[] = []
    for await (const { entry } of clients(await startRig({ follower })).events.streamEventBatches({ jobId })) {
      seen.push(entry.case === 'marker' ? entry.value.type : entry.case)
      more()
    }
    expect(seen).toEqual([EventType.KEEP_ALIVE, 'item'])
  })

  test('only what happened from a time on is unpacked', async () => {
    const rig = await startRig({ follower: scripted([{ attempt: 1, item: aBatch(1, ['a', 'b', 'c'], 10_000) }]) })
    const all = await readAll(clients(rig).events.streamEvents({ jobId, fromTimestamp: { seconds: 11n, nanos: 0 } }))
    expect(all.map(({ event }) => event?.sequence)).toEqual([2n, 3n])
  })
})
