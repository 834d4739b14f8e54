import { create } from '@bufbuild/protobuf'
import { Code, ConnectError } from '@connectrpc/connect'
import { describe, expect, test } from 'vitest'
import { EventType, JobEventSchema } from '../../api/gen/millrace/v1/event_pb.js'
import { JobState } from '../../api/gen/millrace/v1/job_pb.js'
import { ErrorInfoSchema, EventService } from '../../api/gen/millrace/v1/service_pb.js'
import { createClientOver } from '../../src/client/connect.ts'
import { createSeededRandom } from '../../src/sim/seeded-random.ts'
import { createVirtualClock, settle } from '../../src/sim/virtual-clock.ts'
import { modelEvents } from './model-log.ts'
import { collect, createRig, inMemory } from './rig.ts'

const jobId = '01900000-0000-7000-8000-000000000001'
const ended = {
  attempt: 1,
  event: create(JobEventSchema, {
    type: EventType.JOB_ENDED,
    data: { case: 'jobEnded', value: { state: JobState.FAILED, result: { error: 'exit 1' } } },
  }),
}
const keepAlive = { attempt: 1, event: create(JobEventSchema, { type: EventType.KEEP_ALIVE }) }
const progress = (sequence: number) => ({
  attempt: 1,
  event: create(JobEventSchema, { sequence: BigInt(sequence), type: 6, data: { case: 'progress', value: {} } }),
})
const gone = () => new ConnectError('gone', Code.Unavailable)
const batches = modelEvents([], []).streamEventBatches

describe('a stream whose server is away', () => {
  test('G09 followers that lost one server come back apart, and all of them come back', async () => {
    const clock = createVirtualClock()
    const arrivals: number[] = []
    let isUp = true
    let release = () => {}
    const restart = new Promise<void>((resolve) => {
      release = resolve
    })
    const wire = inMemory((router) => {
      router.service(EventService, {
        streamEventBatches: batches,
        async *streamEvents() {
          if (!isUp) throw gone()
          arrivals.push(clock.monotonic())
          yield progress(1)
          if (arrivals.length > 200) return yield ended
          await restart
          throw gone()
        },
      })
    })
    const all = Array.from({ length: 200 }, (_, seed) =>
      collect(createClientOver({ clock, random: createSeededRandom(seed), wire }).follow({ jobId })),
    )
    while (arrivals.length < 200) await settle()
    isUp = false
    release()
    await clock.advance(3_000)
    isUp = true
    await clock.advance(60_000)
    expect((await Promise.all(all)).every((events) => events.length === 2)).toBe(true)
    const back = arrivals.slice(200).map((at) => Math.floor((at - 3_000) / 250))
    const busiest = Math.max(...back.map((slot) => back.filter((other) => other === slot).length))
    expect(back).toHaveLength(200)
    // Over several seconds, and never a crowd within a quarter of one.
    expect(Math.max(...back)).toBeGreaterThan(8)
    expect(busiest).toBeLessThan(40)
  })

  test('G09 a stream that the server ends before the job has ended is continued', async () => {
    let opened = 0
    const { client, run } = createRig((router) => {
      router.service(EventService, {
        streamEventBatches: batches,
        async *streamEvents() {
          opened += 1
          yield progress(opened)
          if (opened === 3) yield ended
        },
      })
    })
    expect(await run(collect(client.follow({ jobId })))).toMatchObject([
      { event: { sequence: 1 } },
      { event: { sequence: 2 } },
      { event: { sequence: 3 } },
      { marker: { kind: 'jobEnded', state: 'FAILED', error: 'exit 1' } },
    ])
  })

  test('G12 a stream that falls silent is given up for a new one; keep-alives are heard and not handed on', async () => {
    let opened = 0
    const clock = createVirtualClock()
    const wire = inMemory((router) => {
      router.service(EventService, {
        streamEventBatches: batches,
        async *streamEvents(_, { signal }) {
          opened += 1
          if (opened === 2) return yield ended
          for (let beats = 0; beats < 3; beats++) {
            yield keepAlive
            await new Promise<void>((resolve) => clock.setTimeout(resolve, 20_000))
          }
          await new Promise((resolve) => signal.addEventListener('abort', resolve))
        },
      })
    })
    const client = createClientOver({ clock, random: createSeededRandom(1), wire })
    const all = collect(client.follow({ jobId }))
    await clock.advance(79_000)
    expect(opened).toBe(1)
    await clock.advance(30_000)
    expect(await all).toMatchObject([{ marker: { kind: 'jobEnded' } }])
  })

  test('gives up on a server that never answered sooner than on one that did', async () => {
    const waits = async (answersFirst: boolean) => {
      let opened = 0
      const { client, run, clock } = createRig((router) => {
        router.service(EventService, {
          streamEventBatches: batches,
          async *streamEvents() {
            opened += 1
            if (answersFirst && opened === 1) yield progress(1)
            throw gone()
          },
        })
      })
      await expect(run(collect(client.follow({ jobId })))).rejects.toMatchObject({
        code: 'UNREACHABLE',
        retry: 'later',
      })
      return clock.monotonic()
    }
    expect(await waits(false)).toBeLessThanOrEqual(30_000)
    expect(await waits(true)).toBeGreaterThan(200_000)
  })

  test('a refusal ends the stream at once, with what the server said', async () => {
    const { client, run, clock } = createRig((router) => {
      router.service(EventService, {
        streamEventBatches: batches,
        // biome-ignore lint/correctness/useYield: it refuses before it says anything.
        async *streamEvents() {
          const info = { code: 'JOB_UNKNOWN', message: 'there is no job x', field: 'jobId' }
          throw new ConnectError('there is no job x', Code.NotFound, undefined, [
            { desc: ErrorInfoSchema, value: info },
          ])
        },
      })
    })
    await expect(run(collect(client.follow({ jobId })))).rejects.toMatchObject({ code: 'JOB_UNKNOWN', field: 'jobId' })
    expect(clock.monotonic()).toBe(0)
  })

  test('what is missing, trimmed or damaged is said once and passed over', async () => {
    const asked: bigint[] = []
    const marked = (type: EventType, data: unknown) => ({
      attempt: 1,
      event: create(JobEventSchema, { type, data: data as never }),
    })
    const script = [
      [marked(EventType.TRIMMED, { case: 'trimmed', value: { beforeSequence: 5n } }), progress(5)],
      [marked(EventType.MISSING, { case: 'missing', value: { fromSequence: 6n, toSequence: 8n } })],
      [
        marked(EventType.MISSING, { case: 'missing', value: { fromSequence: 6n, toSequence: 8n } }),
        marked(EventType.DAMAGED, { case: 'damaged', value: { fromSequence: 9n, toSequence: 9n, reason: 'crc' } }),
        progress(10),
        ended,
      ],
    ]
    const { client, run } = createRig((router) => {
      router.service(EventService, {
        streamEventBatches: batches,
        async *streamEvents({ fromSequence }) {
          asked.push(fromSequence)
          yield* script[asked.length - 1] ?? []
          throw gone()
        },
      })
    })
    expect(await run(collect(client.follow({ jobId })))).toMatchObject([
      { marker: { kind: 'trimmed', before: 5 } },
      { event: { sequence: 5 } },
      { marker: { kind: 'missing', from: 6, to: 8 } },
      { marker: { kind: 'damaged', from: 9, to: 9, reason: 'crc' } },
      { event: { sequence: 10 } },
      { marker: { kind: 'jobEnded' } },
    ])
    expect(asked).toEqual([0n, 6n, 9n])
  })
})

describe('readers of one client', () => {
  /** Streams for ever, one event whenever the test says so; knows who is still listening. */
  const openForEver = () => {
    const listening = new Set<string>()
    const rig = createRig((router) => {
      router.service(EventService, {
        streamEventBatches: batches,
        async *streamEvents({ jobId }, { signal }) {
          listening.add(jobId)
          signal.addEventListener('abort', () => listening.delete(jobId))
          for (let sequence = 1; !signal.aborted; sequence++) {
            yield progress(sequence)
            await settle()
          }
        },
      })
    })
    return { ...rig, listening }
  }

  test('G13 one that throws ends its own stream and no other', async () => {
    const { client, listening } = openForEver()
    const careless = async () => {
      for await (const { attempt } of client.follow({ jobId: 'a' })) throw new TypeError(`in attempt ${attempt}`)
    }
    const careful = client.follow({ jobId: 'b' })
    await careful.next()
    await expect(careless()).rejects.toThrow(TypeError)
    await settle()
    expect([...listening]).toEqual(['b'])
    expect(await careful.next()).toMatchObject({ done: false, value: { event: { sequence: 2 } } })
    await careful.return()
    await settle()
    expect(listening.size).toBe(0)
  })

  test('a signal ends a stream quietly, and closing the client ends it loudly', async () => {
    const { client, listening, clock } = openForEver()
    const stop = new AbortController()
    const stopped = collect(client.follow({ jobId: 'a', signal: stop.signal }))
    const closed = collect(client.follow({ jobId: 'b' }))
    closed.catch(() => {})
    await settle()
    stop.abort()
    expect((await stopped).length).toBeGreaterThan(0)
    client.close()
    await expect(closed).rejects.toMatchObject({ code: 'CLIENT_CLOSED' })
    await settle()
    expect(listening.size).toBe(0)
    expect(clock.timers).toBe(0)
  })
})
