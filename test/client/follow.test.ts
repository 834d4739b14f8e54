import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { EventService } from '../../api/gen/millrace/v1/service_pb.js'
import type { FollowedEvent, FollowedItem } from '../../src/client/watch.ts'
import { type Asked, type ModelAttempt, modelEvents, unpackLines } from './model-log.ts'
import { collect, createRig } from './rig.ts'

const jobId = '01900000-0000-7000-8000-000000000001'

/** What somebody who reads along sees, one line each. */
const seenOfEvents = (entries: readonly FollowedEvent[]): string[] =>
  entries.map((entry) =>
    'marker' in entry
      ? `${entry.attempt} ${entry.marker.kind}`
      : `${entry.attempt}/${entry.event.sequence} ${entry.event.kind === 'output' ? Buffer.from(entry.event.output) : ''}`,
  )

const seenOfItems = (entries: readonly FollowedItem[]): string[] =>
  entries.flatMap((entry) =>
    'marker' in entry
      ? [`${entry.attempt} ${entry.marker.kind}`]
      : unpackLines(entry.item, entry.fromSequence).map(({ sequence, text }) => `${entry.attempt}/${sequence} ${text}`),
  )

const followAll = async (
  attempts: readonly ModelAttempt[],
  cuts: number[],
  from: { attempt?: number; fromSequence?: number },
) => {
  const asked: Asked[] = []
  const { client, run, clock } = createRig((router) => {
    router.service(
      EventService,
      modelEvents(attempts, [...cuts], asked, () => clock.monotonic()),
    )
  })
  const events = await run(collect(client.follow({ jobId, ...from })))
  const { client: second, run: runSecond } = createRig((router) => {
    router.service(EventService, modelEvents(attempts, [...cuts]))
  })
  const items = await runSecond(collect(second.followBatches({ jobId, ...from })))
  return { events: seenOfEvents(events), items: seenOfItems(items), asked }
}

const attempts: readonly ModelAttempt[] = [
  { batches: [3, 2], complete: false },
  { batches: [1, 4, 2], complete: true },
]

describe('a followed log', () => {
  test('is the whole log in order, and ends with the job', async () => {
    const { events, items } = await followAll(attempts, [], {})
    expect(events.map((line) => line.split(' ')[0])).toEqual([
      '1/1',
      '1/2',
      '1/3',
      '1/4',
      '1/5',
      '1',
      '2/1',
      '2/2',
      '2/3',
      '2/4',
      '2/5',
      '2/6',
      '2/7',
      '2',
      '2',
    ])
    expect(events.slice(-2)).toEqual(['2 attemptEnded', '2 jobEnded'])
    expect(items).toEqual(events)
  })

  test('R0.11 begins in the middle of a batch, at the first event wanted', async () => {
    const { events, items } = await followAll(attempts, [], { attempt: 2, fromSequence: 4 })
    expect(events[0]).toBe('2/4 line 4\n')
    expect(items).toEqual(events)
  })

  test('G03 a cut in the middle of a batch is continued exactly after the last event', async () => {
    const { events, asked } = await followAll(attempts, [2, 1], {})
    expect(events).toEqual((await followAll(attempts, [], {})).events)
    expect(asked.map(({ attempt, fromSequence }) => [attempt, fromSequence])).toEqual([
      [0, 0],
      [1, 3],
      [1, 4],
    ])
  })

  test('G08 a cut between two attempts repeats neither events nor the end of the attempt', async () => {
    const { events, items, asked } = await followAll(attempts, [6], {})
    const whole = await followAll(attempts, [], {})
    expect(asked[1]).toMatchObject({ attempt: 1, fromSequence: 6 })
    expect(events).toEqual(whole.events)
    expect(items).toEqual(whole.items)
    expect(events.filter((line) => line === '1 attemptEnded')).toHaveLength(1)
  })

  test('G03 SUB-3 whatever is cut wherever, the views put together are the uncut view', async () => {
    const attempt = fc.record({
      batches: fc.array(fc.integer({ min: 1, max: 6 }), { maxLength: 6 }),
      complete: fc.boolean(),
    })
    const scenario = fc.record({
      attempts: fc.array(attempt, { minLength: 1, maxLength: 4 }),
      cuts: fc.array(fc.integer({ min: 0, max: 12 }), { maxLength: 12 }),
      fromSequence: fc.integer({ min: 0, max: 12 }),
    })
    await fc.assert(
      fc.asyncProperty(scenario, async ({ attempts, cuts, fromSequence }) => {
        const from = { fromSequence, ...(fromSequence % 2 ? { attempt: 1 } : {}) }
        const uncut = await followAll(attempts, [], from)
        const cut = await followAll(attempts, cuts, from)
        expect(cut.events).toEqual(uncut.events)
        expect(cut.items).toEqual(uncut.items)
        expect(uncut.items).toEqual(uncut.events)
      }),
      { numRuns: 80 },
    )
  })

  test('ends without the job when only what is stored is wanted', async () => {
    const { client, run } = createRig((router) => {
      router.service(EventService, {
        ...modelEvents(attempts, []),
        async *streamEvents(request) {
          expect(request.noFollow).toBe(true)
          yield { attempt: 1, event: { sequence: 1n, type: 6, data: { case: 'progress', value: { text: 'half' } } } }
        },
      })
    })
    const all = await run(collect(client.follow({ jobId, noFollow: true })))
    expect(all).toMatchObject([{ attempt: 1, event: { kind: 'progress', text: 'half', sequence: 1 } }])
  })
})
