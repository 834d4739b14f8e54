import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import { timestampFromMs } from '@bufbuild/protobuf/wkt'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { EventType, JobEventSchema } from '../../api/gen/millrace/v1/event_pb.js'
import { readOutputBatch } from '../../src/log/batch-reader.ts'
import { eventTypes, type StoredItem } from '../../src/log/event.ts'
import { createLinePage, outputBytesMax } from '../../src/log/line-page.ts'
import { deflateNow, deflatePooled, packItem, plainOf } from '../../src/log/payload.ts'
import { encodeSingle, processError } from '../../src/log/single-event.ts'
import { columnsOf, countOf, eachOutput, unpackItem } from '../../src/log/stored-batch.ts'
import { createSeededRandom } from '../../src/sim/seeded-random.ts'

interface Output {
  readonly bytes: Uint8Array
  readonly stream: number
  readonly deltaMs: number
  readonly continued: boolean
}

const outputs = fc.array(
  fc.record({
    bytes: fc.oneof(
      fc.uint8Array({ minLength: 1, maxLength: 40 }),
      fc.uint8Array({ minLength: 120, maxLength: 140, size: 'max' }),
      fc.constant(new Uint8Array(20_000).fill(97)),
    ),
    stream: fc.constantFrom(1, 2),
    deltaMs: fc.oneof(fc.constant(0), fc.nat(1_000), fc.nat(2 ** 32 - 1)),
    continued: fc.boolean(),
  }),
  { minLength: 1, maxLength: 60 },
)
const sequences = fc.oneof(fc.integer({ min: 1, max: 300 }), fc.integer({ min: 1, max: 2 ** 53 - 100 }))

/** The same outputs by the fast path, with what is to come out of it. */
const encoded = (all: readonly Output[], sequence: number, timestamp: number, trigger: number, playback: number) => {
  const page = createLinePage(380 * 1_024)
  let at = timestamp
  const taken: (Output & { readonly at: number })[] = []
  for (const output of all) {
    at += taken.length === 0 ? 0 : output.deltaMs
    if (!page.add(output.stream, at, output.bytes, 0, output.bytes.length, output.continued)) break
    taken.push({ ...output, at })
  }
  const bytes = Uint8Array.from(page.encode(sequence, trigger, playback))
  return { bytes, taken, limit: page.bytes() }
}

/** The message that the schema makes of it. */
const message = (
  taken: readonly (Output & { readonly at: number })[],
  sequence: number,
  timestamp: number,
  trigger: number,
  playbackIntervalMs: number,
) => {
  const runs: number[] = []
  let last = timestamp
  let lastStream = 0
  for (const { at, stream } of taken) {
    const place = runs.length - 3
    if (runs.length > 0 && at === last && stream === lastStream) runs[place] = (runs[place] as number) + 1
    else runs.push(1, stream, at - last)
    last = at
    lastStream = stream
  }
  return create(JobEventSchema, {
    sequence: BigInt(sequence),
    timestamp: timestampFromMs(timestamp),
    type: EventType.OUTPUT_BATCH,
    data: {
      case: 'outputBatch',
      value: {
        startSequence: BigInt(sequence),
        endSequence: BigInt(sequence + taken.length - 1),
        data: Buffer.concat(taken.map(({ bytes }) => bytes)),
        lengths: taken.map(({ bytes }) => bytes.length),
        runs,
        continued: taken.flatMap(({ continued }, place) => (continued ? [place] : [])),
        trigger,
        playbackIntervalMs,
      },
    },
  })
}

const itemOf = (bytes: Uint8Array, sequence: number, count: number): StoredItem => {
  const head = { sequence, endSequence: sequence + count - 1, timestamp: 0, type: eventTypes.outputBatch }
  return packItem(head, bytes, deflateNow) as StoredItem
}

describe('the fast path', () => {
  const cases = [outputs, sequences, fc.nat(2 ** 42), fc.nat(6), fc.nat(60_000)] as const

  test('writes byte by byte what the schema says', () => {
    fc.assert(
      fc.property(...cases, (all, sequence, timestamp, trigger, playback) => {
        const { bytes, taken, limit } = encoded(all, sequence, timestamp, trigger, playback)
        const expected = toBinary(JobEventSchema, message(taken, sequence, timestamp, trigger, playback))
        expect(Buffer.from(bytes).equals(expected)).toBe(true)
        expect(bytes.length).toBeLessThanOrEqual(limit)
      }),
    )
  })

  test('reads what the schema writes', () => {
    fc.assert(
      fc.property(...cases, (all, sequence, timestamp, trigger, playback) => {
        const { taken } = encoded(all, sequence, timestamp, trigger, playback)
        const written = message(taken, sequence, timestamp, trigger, playback)
        const columns = readOutputBatch(toBinary(JobEventSchema, written))
        if ('damage' in columns || written.data.case !== 'outputBatch') throw new Error('damage')
        const { data, lengths, runs, continued } = written.data.value
        expect(columns).toMatchObject({
          sequence,
          count: taken.length,
          timestamp,
          trigger,
          playbackIntervalMs: playback,
        })
        expect(Buffer.from(columns.data).equals(data)).toBe(true)
        expect([...columns.ends]).toEqual(lengths.map((_, at) => lengths.slice(0, at + 1).reduce((a, b) => a + b, 0)))
        expect([...columns.runs]).toEqual(runs)
        expect([...columns.continued]).toEqual(continued)
      }),
    )
  })

  test('lines of a chunk and outputs one by one make the same page', () => {
    const line = fc.stringMatching(/^[a-z]{0,200}$/).map((text) => `${text}\n`)
    fc.assert(
      fc.property(fc.array(line, { minLength: 1, maxLength: 50 }), (lines) => {
        const [together, apart] = [createLinePage(64 * 1_024), createLinePage(64 * 1_024)]
        const chunk = Buffer.from(lines.join(''))
        expect(together.addLines(1, 5, chunk, 0, { count: 50, bytes: 1_000 })).toBe(chunk.length)
        for (const one of lines) apart.add(1, 5, Buffer.from(one), 0, one.length, false)
        expect(together.encode(7, 1, 50)).toEqual(apart.encode(7, 1, 50))
      }),
    )
  })

  test('unpacking gives single events, and from any sequence on', () => {
    fc.assert(
      fc.property(outputs, sequences, fc.nat(70), (all, sequence, from) => {
        const { bytes, taken } = encoded(all, sequence, 1_000, 1, 50)
        const item = itemOf(bytes, sequence, taken.length)
        expect(countOf(item)).toBe(taken.length)
        const unpacked = unpackItem(item, sequence + from)
        if ('damage' in unpacked) throw new Error(unpacked.damage)
        const expected = taken.slice(from).map(({ bytes: output, stream, at, continued }, place) => ({
          sequence: sequence + from + place,
          timestamp: at,
          type: eventTypes.output,
          output: Buffer.from(output),
          stream: stream === 2 ? 'stderr' : 'stdout',
          continued,
        }))
        expect([...unpacked.events].map((event) => ({ ...event, output: Buffer.from(event.output ?? []) }))).toEqual(
          expected,
        )
        const visited: unknown[] = []
        const damage = eachOutput(
          item,
          (stream, data, start, end, continued, timestamp) =>
            visited.push([stream, Buffer.from(data.subarray(start, end)), continued, timestamp]),
          sequence + from,
        )
        expect(damage).toBeUndefined()
        expect(visited).toEqual(
          expected.map(({ output, stream, continued, timestamp }) => [
            stream === 'stderr' ? 2 : 1,
            output,
            continued,
            timestamp,
          ]),
        )
      }),
    )
  })

  test('E19 an output that fills a page exactly fits, and one byte more does not', () => {
    for (const bytesMax of [1_024, 16_384, 256 * 1_024, 380 * 1_024]) {
      const most = outputBytesMax(bytesMax)
      const fits = createLinePage(bytesMax)
      expect(fits.add(1, 1, new Uint8Array(most), 0, most, true)).toBe(true)
      expect(fits.encode(2 ** 53 - 2, 6, 60_000).length).toBeLessThanOrEqual(bytesMax)
      const tooLong = createLinePage(bytesMax)
      expect(tooLong.add(1, 1, new Uint8Array(bytesMax), 0, bytesMax, true)).toBe(false)
    }
  })

  test('a clock that jumps further than a batch can say begins another page', () => {
    const page = createLinePage(4_096)
    expect(page.add(1, 5, new Uint8Array(1), 0, 1, false)).toBe(true)
    expect(page.add(1, 5 + 2 ** 32, new Uint8Array(1), 0, 1, false)).toBe(false)
    expect(page.add(1, 5 + 2 ** 32 - 1, new Uint8Array(1), 0, 1, false)).toBe(true)
  })
})

describe('damage', () => {
  test('E22 whatever the bytes are, reading them gives events or damage, and never throws', () => {
    const { bytes, taken } = encoded(
      [{ bytes: Buffer.from('hello\n'), stream: 1, deltaMs: 0, continued: false }],
      5,
      1_000,
      1,
      50,
    )
    fc.assert(
      fc.property(fc.nat(bytes.length - 1), fc.nat(255), fc.nat(bytes.length), (place, byte, cut) => {
        const broken = Uint8Array.from(bytes)
        broken[place] = byte
        for (const some of [broken, broken.subarray(0, cut), Uint8Array.from([...broken, byte])]) {
          const columns = readOutputBatch(some)
          if ('damage' in columns) continue
          expect(columns.ends.at(-1)).toBe(columns.data.length)
          expect(columns.ends).toHaveLength(columns.count)
          unpackItem(itemOf(some, 5, taken.length))
        }
      }),
      { numRuns: 500 },
    )
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (some) => {
        readOutputBatch(some)
        unpackItem(itemOf(some, 5, 1))
        const item = itemOf(some, 5, 1)
        unpackItem({ ...item, type: eventTypes.processEnd })
        unpackItem({ ...item, encoding: 1 })
      }),
      { numRuns: 500 },
    )
  })

  test('E22 a payload whose checksum does not fit is damaged', () => {
    const { bytes } = encoded([{ bytes: Buffer.alloc(500, 'a'), stream: 1, deltaMs: 0, continued: false }], 5, 1, 1, 50)
    const item = itemOf(bytes, 5, 1)
    expect(item.encoding).toBe(1)
    const payload = Uint8Array.from(item.payload)
    payload[3] = (payload[3] as number) ^ 1
    expect(unpackItem({ ...item, payload })).toEqual({ damage: 'the checksum does not fit' })
    expect(unpackItem({ ...item, encoding: 9 as never })).toEqual({ damage: 'encoding 9 is not known' })
    expect(unpackItem({ ...item, sequence: 4, endSequence: 4 })).toHaveProperty('damage')
    expect(eachOutput({ ...item, endSequence: 6 }, () => {})).toHaveProperty('damage')
  })

  test('a payload that unfolds without end is damage, not memory', () => {
    const bomb = itemOf(new Uint8Array(20_000_000), 1, 1)
    expect(bomb.payload.length).toBeLessThan(200_000)
    expect(plainOf(bomb)).toEqual({ damage: 'the payload cannot be unfolded' })
  })

  test('E23 a sequence beyond the safe integers is damage and never rounded', () => {
    const beyond = 2n ** 53n
    const bytes = toBinary(
      JobEventSchema,
      create(JobEventSchema, {
        sequence: beyond,
        type: EventType.OUTPUT_BATCH,
        data: {
          case: 'outputBatch',
          value: { startSequence: beyond, endSequence: beyond, data: Buffer.from('a'), lengths: [1], runs: [1, 1, 0] },
        },
      }),
    )
    expect(readOutputBatch(bytes)).toHaveProperty('damage')
    const last = Number.MAX_SAFE_INTEGER - 1
    const { bytes: fine } = encoded(
      [{ bytes: Buffer.from('a'), stream: 1, deltaMs: 0, continued: false }],
      last,
      1,
      1,
      1,
    )
    expect(readOutputBatch(fine)).toMatchObject({ sequence: last })
  })
})

describe('payloads', () => {
  const head = { sequence: 1, endSequence: 1, timestamp: 1, type: eventTypes.processError }

  test('what does not get smaller stays as it is, and small ones are not tried', async () => {
    const random = createSeededRandom('noise').bytes(300)
    expect(await packItem(head, random, deflateNow)).toMatchObject({ encoding: 0 })
    expect(await packItem(head, Buffer.alloc(199), deflateNow)).toMatchObject({ encoding: 0 })
    expect(await packItem(head, Buffer.alloc(200), deflateNow)).toMatchObject({ encoding: 1 })
  })

  test('large ones are compressed on the pool, and a compressor that fails costs only space', async () => {
    const plain = Buffer.alloc(100_000, 'abc')
    const item = packItem(head, plain, deflatePooled)
    expect(item).toBeInstanceOf(Promise)
    const packed = await item
    expect(packed.payload.length).toBeLessThan(1_000)
    expect(Buffer.from(plainOf(packed) as Uint8Array).equals(plain)).toBe(true)
    const failing = await packItem(head, plain, () => Promise.reject(new Error('no memory')))
    expect(failing).toMatchObject({ encoding: 0 })
    expect(failing.payload).toHaveLength(100_000)
  })

  test('single events are what the schema says, and texts that are too long are cut', () => {
    const bytes = encodeSingle(processError(`${'x'.repeat(9_000)}\ud800`), 12, 1_234_567)
    const event = fromBinary(JobEventSchema, bytes)
    expect(event).toMatchObject({ sequence: 12n, type: EventType.PROCESS_ERROR, timestamp: { seconds: 1_234n } })
    expect(event.data.case === 'processError' && event.data.value.message).toHaveLength(8_193)
    const item = packItem({ ...head, sequence: 12, endSequence: 12 }, bytes, deflateNow) as StoredItem
    const unpacked = unpackItem(item, 12)
    expect('events' in unpacked && [...unpacked.events]).toMatchObject([
      { sequence: 12, type: eventTypes.processError },
    ])
    expect('events' in unpackItem(item, 13) && [...(unpackItem(item, 13) as { events: [] }).events]).toEqual([])
    expect(columnsOf(item)).toHaveProperty('damage')
  })

  test('R0.36 a single stored output reads like one out of a batch', () => {
    const bytes = toBinary(
      JobEventSchema,
      create(JobEventSchema, {
        sequence: 3n,
        type: EventType.OUTPUT,
        data: { case: 'output', value: { output: Buffer.from('old\n'), stream: 2, continued: true } },
      }),
    )
    const item = packItem(
      { sequence: 3, endSequence: 3, timestamp: 9, type: eventTypes.output },
      bytes,
      deflateNow,
    ) as StoredItem
    const unpacked = unpackItem(item)
    expect('events' in unpacked && [...unpacked.events]).toMatchObject([
      { sequence: 3, timestamp: 9, type: eventTypes.output, stream: 'stderr', continued: true },
    ])
    const seen: unknown[] = []
    eachOutput(item, (stream, data, start, end) =>
      seen.push([stream, Buffer.from(data.subarray(start, end)).toString()]),
    )
    expect(seen).toEqual([[2, 'old\n']])
  })
})
