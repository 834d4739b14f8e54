import fc from 'fast-check'
import { expect, test } from 'vitest'
import { createEmbeddedQueue, queueTable } from '../../src/queues/embedded.ts'
import { type Priority, priorities, type Received } from '../../src/queues/port.ts'
import { createVirtualClock, settle, type VirtualClock } from '../../src/sim/virtual-clock.ts'
import { createMemoryTables } from '../../src/tables/memory.ts'
import type { Key, LocalTables, Row } from '../../src/tables/port.ts'

// Any history of a queue with a tiny window, over a store that gives short pages late, is compared with a plain list.

const holdMs = 50

interface Waiting {
  readonly jobId: string
  readonly priority: Priority
  readonly at: number
  hiddenUntilMs: number
  holder: Received | undefined
  sentAgain: boolean
}

const createModel = (clock: VirtualClock) => {
  const startMs = clock.now()
  let waiting: Waiting[] = []
  let turn = 1
  const find = (jobId: string, priority: Priority, at: number) =>
    waiting.find((one) => one.jobId === jobId && one.priority === priority && one.at === at)
  const isFree = (one: Waiting) => one.hiddenUntilMs <= clock.monotonic()
  const heldBy = (holder: Received) => waiting.find((one) => one.holder === holder && !isFree(one))
  return {
    send: (jobId: string, priority: Priority, at: number) => {
      const known = find(jobId, priority, at)
      if (!known) waiting.push({ jobId, priority, at, hiddenUntilMs: 0, holder: undefined, sentAgain: false })
      else if (!isFree(known)) known.sentAgain = true
    },
    /** What the next receive has to give, in order. */
    next: (max: number): readonly Waiting[] => {
      const order = turn === 8 ? [...priorities].reverse() : priorities
      const due = waiting.filter((one) => isFree(one) && startMs + one.at <= clock.now())
      const byClass = order.flatMap((priority) =>
        due.filter((one) => one.priority === priority).sort((a, b) => a.at - b.at || (a.jobId < b.jobId ? -1 : 1)),
      )
      const taken = byClass.slice(0, max)
      if (taken.length > 0) turn = turn === 8 ? 1 : turn + 1
      return taken
    },
    hold: (one: Waiting, holder: Received) => {
      one.holder = holder
      one.hiddenUntilMs = clock.monotonic() + holdMs
      one.sentAgain = false
    },
    finish: (holder: Received) => {
      const one = heldBy(holder)
      if (!one) return
      if (one.sentAgain) one.hiddenUntilMs = 0
      else waiting = waiting.filter((other) => other !== one)
    },
    release: (holder: Received, delayMs: number) => {
      const one = heldBy(holder)
      if (!one) return
      one.holder = undefined
      one.hiddenUntilMs = clock.monotonic() + delayMs
    },
    extend: (holder: Received, ms: number) => {
      const one = heldBy(holder)
      if (one) one.hiddenUntilMs = clock.monotonic() + ms
    },
    /** A deletion by a transaction asks nobody. */
    remove: ({ jobId, priority, at }: { jobId: string; priority: Priority; at: number }) => {
      waiting = waiting.filter((one) => one !== find(jobId, priority, at))
    },
  }
}

const job = fc.record({
  jobId: fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j'),
  priority: fc.constantFrom<Priority>('normal', 'normal', 'normal', 'high', 'low'),
  at: fc.constantFrom(0, 1, 2, 40, 80, 160),
})
const step = fc.oneof(
  { weight: 5, arbitrary: job.map((which) => ({ kind: 'send' as const, which })) },
  { weight: 2, arbitrary: job.map((which) => ({ kind: 'sendWithin' as const, which })) },
  { weight: 2, arbitrary: job.map((which) => ({ kind: 'delete' as const, which })) },
  { weight: 5, arbitrary: fc.integer({ min: 1, max: 3 }).map((max) => ({ kind: 'receive' as const, max })) },
  { weight: 2, arbitrary: fc.nat(20).map((index) => ({ kind: 'finish' as const, index })) },
  { weight: 2, arbitrary: fc.nat(20).map((index) => ({ kind: 'finishWithin' as const, index })) },
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constant('release' as const), index: fc.nat(20), ms: fc.constantFrom(0, 7, 70) }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant('extend' as const), index: fc.nat(20), ms: fc.constantFrom(5, 90) }),
  },
  { weight: 2, arbitrary: fc.constantFrom(1, 10, 50).map((ms) => ({ kind: 'advance' as const, ms })) },
)

/** Pages of two, read before or after some turns of the loop, so that they are old news when they arrive. */
const slowTables = (memory: LocalTables, delays: readonly number[]): LocalTables => {
  let reads = 0
  return {
    ...memory,
    query: async (table, range) => {
      const turns = delays[reads++ % delays.length] ?? 0
      for (let turn = 0; turn < turns % 3; turn++) await settle()
      const page = await memory.query(table, { ...range, limit: Math.min(2, range.limit) })
      for (let turn = 0; turn < turns; turn++) await settle()
      return page
    },
  }
}

test('whatever happens, the embedded queue gives what a plain list would give, in the same order', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.tuple(fc.array(job, { maxLength: 30 }), fc.array(step, { minLength: 10, maxLength: 80 })),
      fc.array(fc.nat(5), { minLength: 1, maxLength: 5 }),
      fc.constantFrom(1, 2, 3, 6, 9, 12, 16),
      async ([before, steps], delays, windowMax) => {
        const clock = createVirtualClock()
        const tables = slowTables(createMemoryTables([queueTable]), delays)
        const queue = createEmbeddedQueue({ tables, clock }, { holdMs, windowMax })
        const startMs = clock.now()
        const model = createModel(clock)
        const given: { received: Received; which: Waiting }[] = []
        const outgoing = ({ jobId, priority, at }: { jobId: string; priority: Priority; at: number }) => ({
          message: { jobId, priority, queue: 'mail', attempt: 0 },
          notBefore: startMs + at,
        })
        const receive = async (max: number) => {
          const expected = model.next(max)
          const received = await queue.receive('mail', { max, waitMs: 0 })
          const names = received.map(({ message }) => `${message?.priority} ${message?.jobId}`)
          const wanted = expected.map((one) => `${one.priority} ${one.jobId}`)
          // Fewer than asked for is allowed, none is not: the window may have run dry on the way.
          expect(names).toEqual(wanted.slice(0, Math.max(names.length, Math.min(1, wanted.length))))
          expected.slice(0, received.length).forEach((which, index) => {
            model.hold(which, received[index] as Received)
            given.push({ received: received[index] as Received, which })
          })
          return received.length
        }
        for (const which of before) {
          await queue.send([outgoing(which)])
          model.send(which.jobId, which.priority, which.at)
        }
        for (const one of steps) {
          if (one.kind === 'send' || one.kind === 'sendWithin') {
            if (one.kind === 'send') await queue.send([outgoing(one.which)])
            else await tables.commit([{ actions: [queue.within.send(outgoing(one.which))] }])
            model.send(one.which.jobId, one.which.priority, one.which.at)
          } else if (one.kind === 'delete') {
            const { row } = queue.within.send(outgoing(one.which)) as { row: Row }
            const key: Key = [String(row['channel']), String(row['place'])]
            await tables.commit([{ actions: [{ kind: 'delete', table: queueTable.name, key }] }])
            model.remove(one.which)
          } else if (one.kind === 'receive') await receive(one.max)
          else if (one.kind === 'advance') await clock.advance(one.ms)
          else {
            const hit = given[one.index % Math.max(1, given.length)]
            if (!hit) continue
            const { received, which } = hit
            if (one.kind === 'finish') await queue.finish([received]).then(() => model.finish(received))
            else if (one.kind === 'release')
              await queue.release([received], one.ms).then(() => model.release(received, one.ms))
            else if (one.kind === 'extend')
              await queue.extend([received], one.ms).then(() => model.extend(received, one.ms))
            else {
              await tables.commit([{ actions: [queue.within.finish(received)] }])
              model.remove(which)
            }
          }
        }
        // In the end everything that is left comes, and nothing else.
        await clock.advance(1_000)
        while ((await receive(3)) > 0);
        await queue.close()
        await settle()
        expect(clock.timers).toBe(0)
      },
    ),
    { numRuns: 1_000 },
  )
})
