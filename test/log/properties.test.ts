import fc from 'fast-check'
import { expect, test } from 'vitest'
import { createAttemptLog } from '../../src/log/append.ts'
import { eventTypes, type StoredItem, type StreamName } from '../../src/log/event.ts'
import { deflateNow } from '../../src/log/payload.ts'
import { createSeededRandom } from '../../src/sim/seeded-random.ts'
import { createVirtualClock, settle } from '../../src/sim/virtual-clock.ts'
import { bytesOf, eventsOf, someConfig, Throttled } from './rig.ts'

const chunk = fc.record({
  stream: fc.constantFrom<StreamName>('stdout', 'stderr'),
  bytes: fc.oneof(
    fc.uint8Array({ maxLength: 60 }),
    fc.array(fc.constantFrom(10, 13, 97), { maxLength: 300 }).map((some) => Uint8Array.from(some)),
    fc
      .record({ length: fc.nat(5_000), byte: fc.constantFrom(10, 97) })
      .map(({ length, byte }) => new Uint8Array(length).fill(byte)),
  ),
  waitMs: fc.oneof(fc.constant(0), fc.nat(3_000)),
  after: fc.constantFrom('nothing', 'nothing', 'nothing', 'watched', 'unwatched', 'error', 'progress', 'clock back'),
})

const limits = fc.record({
  maxBatchSize: fc.integer({ min: 1, max: 8 }),
  batchSizeBound: fc.integer({ min: 8, max: 40 }),
  maxBatchBytes: fc.integer({ min: 1_024, max: 3_000 }),
})

test('LOG-2 LOG-4 LOG-6 LOG-7 LOG-8 any chunks of any bytes on two streams, any failures: the same bytes, dense, within limits', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(chunk, { maxLength: 40 }),
      limits,
      fc.nat(),
      fc.nat(300),
      async (chunks, config, seed, floor) => {
        const clock = createVirtualClock()
        const random = createSeededRandom(seed)
        const stored = new Map<number, StoredItem>()
        let under = 0
        const publish = async (items: readonly StoredItem[]): Promise<void> => {
          under += 1
          expect(under).toBe(1)
          expect(items.length).toBeLessThanOrEqual(25)
          // Some are stored and the answer is lost; then the same come again.
          const failed = random.next() < 0.3
          const reached = failed ? Math.floor(random.next() * (items.length + 1)) : items.length
          if (random.next() < 0.5)
            await new Promise<void>((resolve) => clock.setTimeout(resolve, random.next() * 3_000))
          for (const item of items.slice(0, reached)) {
            const before = stored.get(item.sequence)
            if (before !== undefined) expect(item).toEqual(before)
            stored.set(item.sequence, item)
          }
          under -= 1
          if (failed) throw new Throttled('not now')
        }
        const log = createAttemptLog(
          { clock, random, publish, emit: () => {}, deflate: deflateNow },
          someConfig(config),
          { jobId: 'job', attempt: 1, watchedFloorMs: floor, heldBytesMax: 10_000 },
        )
        log.start({ attempt: 1, workerId: 'w' })
        const written = { stdout: [] as Uint8Array[], stderr: [] as Uint8Array[] }
        for (const { stream, bytes, waitMs, after } of chunks) {
          const copy = Uint8Array.from(bytes)
          written[stream].push(bytes)
          const room = log.output(stream, copy)
          // It belongs to the caller again.
          copy.fill(0)
          if (room !== undefined) {
            let isThere = false
            void room.then(() => {
              isThere = true
            })
            for (let step = 0; !isThere && step < 1_000; step++) {
              await settle()
              if (!isThere) clock.step()
            }
            expect(isThere).toBe(true)
          }
          if (after === 'watched' || after === 'unwatched') log.setWatched(after === 'watched')
          if (after === 'error') log.error('oh').catch(() => {})
          if (after === 'progress') log.progress({ fraction: 0.5 })
          if (after === 'clock back') clock.setWall(clock.now() - 10_000)
          await clock.advance(waitMs)
        }
        let closing: Awaited<ReturnType<typeof log.finish>> | undefined
        void log.finish({ exitCode: 0 }).then((some) => {
          closing = some
        })
        for (let step = 0; closing === undefined && step < 10_000; step++) {
          await settle()
          if (closing === undefined) clock.step()
        }
        if (closing === undefined) throw new Error('the log did not end')
        const items = [...[...stored.values()].sort((a, b) => a.sequence - b.sequence), ...closing.output, closing.end]
        const events = eventsOf(items)
        expect(events.map(({ sequence }) => sequence)).toEqual(events.map((_, place) => place + 1))
        expect(events[0]?.type).toBe(eventTypes.processStart)
        expect(events.at(-1)?.type).toBe(eventTypes.processEnd)
        for (const stream of ['stdout', 'stderr'] as const) {
          expect(bytesOf(items, stream).equals(Buffer.concat(written[stream]))).toBe(true)
        }
        const times = events.map(({ timestamp }) => timestamp)
        expect(times).toEqual([...times].sort((a, b) => a - b))
        for (const item of items) {
          if (item.type !== eventTypes.outputBatch) continue
          expect(item.payload.length).toBeLessThanOrEqual(config.maxBatchBytes)
          expect(item.endSequence - item.sequence).toBeLessThan(config.batchSizeBound)
        }
        await settle()
        expect(clock.timers).toBe(0)
      },
    ),
    { numRuns: 60 },
  )
}, 60_000)
