import { describe, expect, test } from 'vitest'
import { createEmbeddedQueue, queueTable } from '../../src/queues/embedded.ts'
import type { Message, Outgoing, Received } from '../../src/queues/port.ts'
import { createSeededRandom } from '../../src/sim/seeded-random.ts'
import { createVirtualClock, settle } from '../../src/sim/virtual-clock.ts'
import { TableUnavailable } from '../../src/tables/faults.ts'
import { createMemoryTables } from '../../src/tables/memory.ts'
import type { Key, LocalTables, Row } from '../../src/tables/port.ts'

const world = ({ pageMax = 1_000, ...options }: { windowMax?: number; holdMs?: number; pageMax?: number } = {}) => {
  const clock = createVirtualClock()
  const memory = createMemoryTables([queueTable])
  let reads = 0
  let failing = false
  /** Reads that end only when the test says so. */
  let gate: Promise<void> | undefined
  const tables: LocalTables = {
    ...memory,
    query: async (table, range) => {
      reads += 1
      if (failing) throw new TableUnavailable('no disk', 'none')
      const page = await memory.query(table, { ...range, limit: Math.min(pageMax, range.limit) })
      await gate
      return page
    },
  }
  const open = () => createEmbeddedQueue({ tables, clock, random: createSeededRandom(String(reads)) }, options)
  const startMs = clock.now()
  return {
    clock,
    tables,
    open,
    reads: () => reads,
    fail: (on: boolean) => {
      failing = on
    },
    holdReads: () => {
      let release = () => {}
      gate = new Promise((resolve) => {
        release = resolve
      })
      return () => {
        gate = undefined
        release()
      }
    },
    outgoing: (jobId: string, atMs = 0, message: Partial<Message> = {}): Outgoing => ({
      message: { jobId, queue: 'mail', priority: 'normal', attempt: 0, ...message },
      notBefore: startMs + atMs,
    }),
  }
}
const ids = (received: readonly Received[]) => received.map((one) => one.message?.jobId)
const now = (max = 10) => ({ max, waitMs: 0 })
const later = (max = 10) => ({ max, waitMs: 60_000 })

describe('the embedded queue', () => {
  test('B06 a row that says nothing by its place and has no body comes without a message', async () => {
    const { open, tables } = world()
    const queue = open()
    const places = ['?', '0000000000000001#', '0000000000000001#job#-1', '0000000000000001#a b#0']
    const put = (place: string) =>
      ({ kind: 'put', table: queueTable.name, row: { channel: 'mail#normal', place } }) as const
    await tables.commit(places.map((place) => ({ actions: [put(place)] })))
    const received = await queue.receive('mail', now())
    expect(received.map(({ message, body }) => ({ message, body }))).toEqual(
      places.map(() => ({ message: undefined, body: '' })),
    )
    await queue.close()
  })

  test('a message is the same after a restart as before it, whatever its ids look like', async () => {
    const { open, outgoing } = world()
    const sent = ['job-1', 'a#b#7', '"quoted"', 'back\\slash', '#'].map((jobId, attempt) =>
      outgoing(jobId, 0, { attempt }),
    )
    const first = open()
    await first.send(sent)
    await first.close()
    const second = open()
    const received = await second.receive('mail', now())
    const byAttempt = [...received].sort((a, b) => (a.message?.attempt ?? 0) - (b.message?.attempt ?? 0))
    expect(byAttempt.map(({ message }) => message)).toEqual(sent.map(({ message }) => message))
    expect(byAttempt.map(({ body }) => JSON.parse(body).job_id)).toEqual(sent.map(({ message }) => message.jobId))
    await second.close()
  })

  test('does not read the store to give a message that was sent while it was open', async () => {
    const { open, outgoing, reads } = world()
    const queue = open()
    await queue.receive('mail', now())
    const before = reads()
    for (let index = 0; index < 100; index++) {
      await queue.send([outgoing(`job-${index}`)])
      await queue.finish(await queue.receive('mail', now()))
    }
    expect(await queue.receive('mail', now())).toEqual([])
    expect(reads()).toBe(before)
  })

  test('gives everything that was not finished again after a restart, in order', async () => {
    const { open, outgoing } = world()
    const first = open()
    await first.send(['c', 'b', 'a', 'd'].map((jobId) => outgoing(jobId)))
    const received = await first.receive('mail', now(3))
    expect(ids(received)).toEqual(['a', 'b', 'c'])
    await first.finish(received.slice(0, 1))
    await first.release(received.slice(1, 2), 60_000)
    await first.close()
    expect(ids(await open().receive('mail', now()))).toEqual(['b', 'c', 'd'])
  })

  test('gives more than fits into its window, in order, without losing any', async () => {
    const { open, outgoing, clock } = world({ windowMax: 3 })
    const queue = open()
    await queue.receive('mail', now())
    const times = [5, 3, 9, 1, 7, 2, 8, 0, 6, 4]
    for (const at of times) await queue.send([outgoing(`job-${at}`, at)])
    await clock.advance(10)
    const seen: (string | undefined)[] = []
    for (let turn = 0; turn < times.length; turn++) seen.push(...ids(await queue.receive('mail', now(1))))
    expect(seen).toEqual([...times].sort().map((at) => `job-${at}`))
    expect(await queue.receive('mail', now())).toEqual([])
  })

  test('does not starve an early message that arrives when the window is full', async () => {
    const { open, outgoing, clock } = world({ windowMax: 2 })
    const queue = open()
    await queue.receive('mail', now())
    for (const at of [10, 11, 12, 13]) await queue.send([outgoing(`job-${at}`, at)])
    await queue.send([outgoing('early', 1)])
    await clock.advance(20)
    expect(ids(await queue.receive('mail', now(1)))).toEqual(['early'])
  })

  test('misses nothing that is sent or deleted while a page is being read', async () => {
    const { open, outgoing, holdReads, clock, tables } = world()
    const writer = open()
    await writer.send([outgoing('a', 1), outgoing('c', 3)])
    await clock.advance(10)
    const goOn = holdReads()
    const waiting = open().receive('mail', later())
    await settle()
    await writer.send([outgoing('b', 2), outgoing('d', 4)])
    const { row } = writer.within.send(outgoing('c', 3)) as { row: Row }
    const key: Key = [String(row['channel']), String(row['place'])]
    await tables.commit([{ actions: [{ kind: 'delete', table: queueTable.name, key }] }])
    goOn()
    expect(ids(await waiting)).toEqual(['a', 'b', 'd'])
  })

  test('a page that arrives after the window has overflowed leaves no hole', async () => {
    const { open, outgoing, holdReads, clock } = world({ windowMax: 8, pageMax: 2 })
    const writer = open()
    await writer.send([40, 41, 42, 43, 44].map((at) => outgoing(`job-${at}`, at)))
    await clock.advance(100)
    const queue = open()
    expect(ids(await queue.receive('mail', now(1)))).toEqual(['job-40'])
    const goOn = holdReads()
    // One is left in the window, so this starts to read the next page, beginning with job-42.
    expect(ids(await queue.receive('mail', now(1)))).toEqual(['job-41'])
    const early = Array.from({ length: 12 }, (_, index) => 10 + index)
    await writer.send(early.map((at) => outgoing(`job-${at}`, at)))
    const seen: (string | undefined)[] = [...ids(await queue.receive('mail', now(4)))]
    goOn()
    await settle()
    for (let turn = 0; turn < 11; turn++) seen.push(...ids(await queue.receive('mail', now(1))))
    expect(seen).toEqual([...early, 42, 43, 44].map((at) => `job-${at}`))
  })

  test('a message that is deleted before anybody received it is never given', async () => {
    const { open, outgoing, tables } = world()
    const queue = open()
    await queue.receive('mail', now())
    await queue.send([outgoing('a'), outgoing('b')])
    const { row } = queue.within.send(outgoing('a')) as { row: Row }
    const key: Key = [String(row['channel']), String(row['place'])]
    await tables.commit([{ actions: [{ kind: 'delete', table: queueTable.name, key }] }])
    expect(ids(await queue.receive('mail', now()))).toEqual(['b'])
  })

  test('a message that is sent again while it is held is given again after the first was finished', async () => {
    const { open, outgoing } = world()
    const queue = open()
    await queue.send([outgoing('a')])
    const held = await queue.receive('mail', now())
    await queue.send([outgoing('a')])
    expect(await queue.receive('mail', now())).toEqual([])
    await queue.finish(held)
    const again = await queue.receive('mail', now())
    expect(ids(again)).toEqual(['a'])
    await queue.finish(again)
    expect(await queue.receive('mail', now())).toEqual([])
  })

  test('a message that is sent again while it waits is given once', async () => {
    const { open, outgoing } = world()
    const queue = open()
    await queue.receive('mail', now())
    await queue.send([outgoing('a'), outgoing('a')])
    await queue.send([outgoing('a')])
    expect(ids(await queue.receive('mail', now()))).toEqual(['a'])
    expect(await queue.receive('mail', now())).toEqual([])
  })

  test('receivers that wait are served in the order they came', async () => {
    const { open, outgoing } = world()
    const queue = open()
    const first = queue.receive('mail', later(1))
    const second = queue.receive('mail', later(2))
    const third = queue.receive('mail', later(1))
    await settle()
    await queue.send(['a', 'b', 'c', 'd'].map((jobId) => outgoing(jobId)))
    expect(ids(await first)).toEqual(['a'])
    expect(ids(await second)).toEqual(['b', 'c'])
    expect(ids(await third)).toEqual(['d'])
  })

  test('a receiver that went away leaves its place to the next', async () => {
    const { open, outgoing } = world()
    const queue = open()
    const controller = new AbortController()
    const first = queue.receive('mail', { ...later(), signal: controller.signal })
    const second = queue.receive('mail', later())
    await settle()
    controller.abort()
    await queue.send([outgoing('a')])
    expect(await first).toEqual([])
    expect(ids(await second)).toEqual(['a'])
  })

  test('leaves no timer behind when nobody waits and nothing is held', async () => {
    const { open, outgoing, clock } = world()
    const queue = open()
    await queue.send([outgoing('a'), outgoing('b', 5_000)])
    await queue.finish(await queue.receive('mail', now()))
    expect(await queue.receive('mail', now())).toEqual([])
    expect(clock.timers).toBe(0)
  })

  test('a delayed message is given at its time even if that is weeks away', async () => {
    const { open, outgoing, clock } = world()
    const queue = open()
    const weekMs = 7 * 86_400_000
    await queue.send([outgoing('a', 4 * weekMs)])
    const waiting = queue.receive('mail', { max: 1, waitMs: 5 * weekMs })
    await clock.advance(4 * weekMs - 1)
    await queue.send([outgoing('soon', 4 * weekMs)])
    await clock.advance(1)
    expect(ids(await waiting)).toEqual(['a'])
  })

  test('a wall clock that is set forward makes a delayed message due within a minute', async () => {
    const { open, outgoing, clock } = world()
    const queue = open()
    await queue.send([outgoing('a', 86_400_000)])
    const waiting = queue.receive('mail', { max: 1, waitMs: 120_000 })
    await settle()
    clock.setWall(clock.now() + 86_400_000)
    await clock.advance(60_000)
    expect(ids(await waiting)).toEqual(['a'])
  })

  test('a store that cannot be read fails the receive, and the next one goes on', async () => {
    const { open, outgoing, fail } = world()
    const queue = open()
    await queue.send([outgoing('a')])
    fail(true)
    await expect(queue.receive('mail', later())).rejects.toMatchObject({ code: 'QUEUE_UNAVAILABLE', retry: 'later' })
    await expect(queue.deadLetters('mail', 1)).rejects.toMatchObject({ code: 'QUEUE_UNAVAILABLE' })
    fail(false)
    expect(ids(await queue.receive('mail', now()))).toEqual(['a'])
  })

  test('a store that was closed is a queue that was closed', async () => {
    const { open, outgoing, tables } = world()
    const queue = open()
    await tables.close()
    expect(await queue.send([outgoing('a')])).toMatchObject([{ code: 'QUEUE_CLOSED' }])
    await expect(queue.receive('mail', now())).rejects.toMatchObject({ code: 'QUEUE_CLOSED' })
  })

  test('dead letters are forgotten after two weeks', async () => {
    const { open, outgoing, clock } = world()
    const queue = open()
    await queue.send([outgoing('a')])
    for (const received of await queue.receive('mail', now())) await queue.deadLetter(received, 'unknown job')
    expect(await queue.deadLetters('mail', 10)).toHaveLength(1)
    await clock.advance(14 * 86_400_000 + 1_000)
    expect(await queue.deadLetters('mail', 10)).toEqual([])
  })
})
