import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { createEventBuffer, type EventBuffer } from '../../src/client/event-buffer.ts'
import { createEventReader } from '../../src/client/event-reader.ts'
import type { FollowedItem } from '../../src/client/watch.ts'
import { batchItem, type Line, startedAt, unpackLines } from './model-log.ts'

const createRig = (budgetBytes = 1_000_000, fromSequence = 1) => {
  const requeried: number[] = []
  const requery = (from: number) => void requeried.push(from)
  const buffer = createEventBuffer<Line>({ unpack: unpackLines, requery }, { budgetBytes, fromSequence })
  return { buffer, requeried }
}

/** The sequences of the next events, as many as there are. */
const drain = (buffer: EventBuffer<Line>, max = Number.POSITIVE_INFINITY): number[] => {
  const sequences: number[] = []
  for (let taken = 0; taken < max; taken++) {
    const event = buffer.next()
    if (!event) break
    sequences.push(event.sequence)
  }
  return sequences
}

describe('the event buffer', () => {
  test('R0.13 unpacks a batch: sequences count from its first, times are those stored', () => {
    const { buffer } = createRig()
    buffer.add(batchItem(7, 3))
    expect([buffer.next(), buffer.next(), buffer.next(), buffer.next()]).toEqual([
      { sequence: 7, timestamp: startedAt + 7, text: 'line 7\n' },
      { sequence: 8, timestamp: startedAt + 8, text: 'line 8\n' },
      { sequence: 9, timestamp: startedAt + 9, text: 'line 9\n' },
      undefined,
    ])
  })

  test('R0.11 leaves out what lies before the first sequence wanted, and what it was given before', () => {
    const { buffer } = createRig(1_000_000, 5)
    buffer.add(batchItem(1, 3))
    buffer.add(batchItem(4, 3))
    buffer.add(batchItem(4, 3))
    buffer.add(batchItem(6, 3))
    buffer.add({ sequence: 9, timestamp: 0, text: 'single' })
    buffer.add({ sequence: 9, timestamp: 0, text: 'again' })
    expect(drain(buffer)).toEqual([5, 6, 7, 8, 9])
  })

  test('R0.11 goes back and forth within what it holds, also into the middle of a batch', () => {
    const { buffer, requeried } = createRig()
    for (const first of [1, 5, 9]) buffer.add(batchItem(first, 4))
    expect(drain(buffer, 10)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10])
    expect(buffer.rewind(3)).toBe(true)
    expect(drain(buffer, 4)).toEqual([3, 4, 5, 6])
    expect(buffer.rewind(12)).toBe(true)
    expect(drain(buffer)).toEqual([12])
    buffer.add(batchItem(13, 1))
    expect(drain(buffer)).toEqual([13])
    expect(requeried).toEqual([])
  })

  test('E0.16 keeps to its budget by letting go of what was read longest ago, and asks again when one goes back that far', () => {
    const one = createRig(Number.POSITIVE_INFINITY)
    one.buffer.add(batchItem(1, 10))
    const { buffer, requeried } = createRig(3 * one.buffer.heldBytes + 100)
    for (let first = 1; first < 1_000; first += 10) {
      buffer.add(batchItem(first, 10))
      drain(buffer)
      expect(buffer.heldBytes).toBeLessThanOrEqual(3 * one.buffer.heldBytes + 100)
    }
    expect(buffer.rewind(991)).toBe(true)
    expect(buffer.rewind(42)).toBe(false)
    expect(requeried).toEqual([42])
    expect(buffer.next()).toBeUndefined()
    buffer.add(batchItem(41, 10))
    expect(drain(buffer, 2)).toEqual([42, 43])
  })

  test('E0.16 what was not read never leaves; adding says when to stop', () => {
    const { buffer } = createRig(500)
    const rooms = [1, 11, 21, 31, 41].map((first) => buffer.add(batchItem(first, 10)))
    expect(rooms[0]).toBe(true)
    expect(rooms.at(-1)).toBe(false)
    expect(drain(buffer)).toEqual(Array.from({ length: 50 }, (_, at) => at + 1))
    expect(buffer.heldBytes).toBeLessThanOrEqual(500)
  })

  test('E0.16 a small piece of a large message does not keep the message', () => {
    const kept: number[] = []
    const unpack = (item: { payload: Uint8Array }) => {
      kept.push(item.payload.buffer.byteLength)
      return []
    }
    const buffer = createEventBuffer({ unpack, requery: () => {} }, { budgetBytes: 1_000 })
    const item = batchItem(1, 1)
    const message = new Uint8Array(100_000)
    message.set(item.payload)
    buffer.add({ ...item, payload: message.subarray(0, item.payload.length) })
    buffer.next()
    expect(kept).toEqual([item.payload.length])
  })

  test('E0.16 reads as a list would, whatever is added, read and gone back to', () => {
    const step = fc.oneof(
      { weight: 3, arbitrary: fc.record({ read: fc.integer({ min: 1, max: 12 }) }) },
      { weight: 1, arbitrary: fc.record({ rewind: fc.integer({ min: 1, max: 60 }) }) },
    )
    const sizes = fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1, maxLength: 10 })
    fc.assert(
      fc.property(
        sizes,
        fc.array(step, { maxLength: 40 }),
        fc.integer({ min: 100, max: 900 }),
        (counts, steps, budget) => {
          let next = 1
          const items = counts.map((count) => {
            next += count
            return batchItem(next - count, count)
          })
          const last = next - 1
          let source = 0
          const requery = (from: number) => {
            const place = items.findIndex(({ endSequence }) => endSequence >= from)
            source = place === -1 ? items.length : place
          }
          const buffer = createEventBuffer<Line>({ unpack: unpackLines, requery }, { budgetBytes: budget })
          let wanted = 1
          for (const one of steps) {
            if ('rewind' in one) {
              wanted = Math.min(one.rewind, last)
              buffer.rewind(wanted)
              continue
            }
            for (let taken = 0; taken < one.read; taken++) {
              let event = buffer.next()
              while (!event && source < items.length) {
                buffer.add(items[source++] as (typeof items)[number])
                event = buffer.next()
              }
              expect(event?.sequence).toBe(wanted <= last ? wanted : undefined)
              wanted = Math.min(wanted + 1, last + 1)
            }
          }
        },
      ),
      { numRuns: 300 },
    )
  })
})

describe('the event reader', () => {
  const counts = [4, 4, 4, 4]
  const items = counts.map((count, at) => batchItem(at * 4 + 1, count))

  const createReader = (budgetBytes: number) => {
    const opened: number[] = []
    let isClosed = 0
    async function* open(fromSequence: number): AsyncGenerator<FollowedItem, void, void> {
      opened.push(fromSequence)
      try {
        for (const item of items) if (item.endSequence >= fromSequence) yield { attempt: 1, item, fromSequence }
        yield { attempt: 1, marker: { kind: 'missing', from: 17, to: 18 } }
        yield { attempt: 1, marker: { kind: 'attemptEnded', lastSequence: 18, complete: false } }
      } finally {
        isClosed += 1
      }
    }
    const reader = createEventReader<Line>({ open, unpack: unpackLines }, { budgetBytes })
    const rest = async () => {
      const all: unknown[] = []
      for (let one = await reader.next(); one; one = await reader.next())
        all.push('event' in one ? one.event.sequence : one.marker.kind)
      return all
    }
    return { reader, rest, opened, closed: () => isClosed }
  }

  test('R0.11 reads to the end, goes back within the buffer and reads again without asking', async () => {
    const { reader, rest, opened } = createReader(1_000_000)
    expect(await rest()).toEqual([...Array.from({ length: 16 }, (_, at) => at + 1), 'missing'])
    reader.rewind(15)
    expect(await rest()).toEqual([15, 16])
    expect(opened).toEqual([1])
  })

  test('E0.16 goes back beyond the buffer by asking again from there', async () => {
    const { reader, rest, opened } = createReader(10)
    await rest()
    reader.rewind(6)
    expect(await rest()).toEqual([6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 'missing'])
    expect(opened).toEqual([1, 6])
  })

  test('R0.11 going back while the next event is awaited counts for that wait already', async () => {
    const { reader, opened, closed } = createReader(10)
    for (let taken = 0; taken < 8; taken++) await reader.next()
    const coming = reader.next()
    reader.rewind(2)
    expect(await coming).toMatchObject({ event: { sequence: 2 } })
    expect(opened).toEqual([1, 2])
    await reader.close()
    expect(closed()).toBe(2)
  })
})
