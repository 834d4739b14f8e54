import fc from 'fast-check'
import { unpack } from 'msgpackr'
import { expect, test } from 'vitest'
import {
  decodeExpiry,
  decodeKey,
  encodeExpiry,
  encodeKey,
  encodePlace,
  findPlace,
  keyOfPlace,
  type Place,
  writePlace,
} from '../../src/tables/lmdb/keys.ts'
import {
  copyOf,
  createRecordArena,
  createRecordPlan,
  decodeRecord,
  type RecordArena,
  type RecordPlan,
  type Span,
} from '../../src/tables/lmdb/record.ts'
import type { Row, TableSchema } from '../../src/tables/port.ts'

const text = fc.string({ unit: 'grapheme', maxLength: 40 })
const number = fc.double({ noNaN: true })
const value = fc.oneof(
  text,
  fc.string({ unit: 'grapheme', minLength: 10, maxLength: 400 }),
  number,
  fc.integer(),
  fc.boolean(),
  fc.uint8Array({ maxLength: 300 }),
)
const row: fc.Arbitrary<Row> = fc.dictionary(
  text.filter((name) => name !== '__proto__'),
  value,
  { noNullPrototype: true },
)

const encode = (arena: RecordArena, some: Row, plan: RecordPlan): Span => {
  const span = { chunk: undefined, start: 0, end: 0 }
  arena.encode(some, plan, span)
  return span
}

const plain = (some: Row) =>
  Object.entries(some).map(([name, cell]) => [name, cell instanceof Uint8Array ? [...cell] : cell])

test('a record read back is the row that was written, and any MessagePack reader agrees', () => {
  const arena = createRecordArena()
  const plan = createRecordPlan()
  fc.assert(
    fc.property(fc.array(row, { maxLength: 5 }), (rows) => {
      const spans = rows.map((some) => encode(arena, some, plan))
      const records = spans.map(copyOf)
      records.forEach((record, index) => {
        const written = rows[index] as Row
        const decoded = decodeRecord(record, record.length)
        expect('row' in decoded && plain(decoded.row)).toEqual(plain(written))
        expect(plain(unpack(record.subarray(4)) as Row)).toEqual(plain(written))
      })
      arena.reset()
    }),
  )
})

test('a row that does not fit into what is left goes into new memory, and the ones before it stay', () => {
  const arena = createRecordArena()
  const plan = createRecordPlan()
  const rows = Array.from({ length: 30 }, (_, n) => ({ id: `${n}`, bytes: new Uint8Array(100_000).fill(n) }))
  const spans = rows.map((some) => encode(arena, some, plan))
  const records = spans.map(copyOf)
  records.forEach((record, n) => {
    expect(decodeRecord(record, record.length)).toMatchObject({ row: { id: `${n}` } })
  })
})

test('any flipped bit of a record is noticed', () => {
  const record = copyOf(encode(createRecordArena(), { id: 'a', n: 7, text: 'some text' }, createRecordPlan()))
  fc.assert(
    fc.property(fc.nat(record.length * 8 - 1), (bit) => {
      const damaged = Buffer.from(record)
      damaged[bit >> 3] = (damaged[bit >> 3] as number) ^ (1 << (bit & 7))
      expect(decodeRecord(damaged, damaged.length)).toHaveProperty('damage')
    }),
  )
})

const byNumber: TableSchema = { name: 't', partition: 'p', sort: { attribute: 's', type: 'number' }, indexes: {} }
const byText: TableSchema = { name: 't', partition: 'p', sort: { attribute: 's', type: 'string' }, indexes: {} }
const bare: TableSchema = { name: 't', partition: 'p', indexes: {} }
const awkward = fc.oneof(text, fc.string({ unit: fc.constantFrom('\0', '\x01', 'a', 'ÿ', '\u{10ffff}'), maxLength: 6 }))
const bytes = (some: string) => Buffer.from(some, 'latin1')
const sign = (order: number) => Math.sign(order)

test('keys are read back as they were written, and different keys differ', () => {
  fc.assert(
    fc.property(awkward, awkward, number, awkward, (a, b, n, other) => {
      expect(decodeKey(byText, encodeKey(byText, [a, b]))).toEqual([a, b])
      expect(decodeKey(byNumber, encodeKey(byNumber, [a, n]))).toEqual([a, n === 0 ? 0 : n])
      expect(decodeKey(bare, encodeKey(bare, [a]))).toEqual([a])
      expect(encodeKey(byText, [a, b]) === encodeKey(byText, [other, b])).toBe(a === other)
      expect(decodeExpiry(encodeExpiry(n, a))).toEqual({ second: n === 0 ? 0 : n, key: a })
    }),
  )
})

test('byte order is the order of the sort values, also inside an index', () => {
  const index = (type: 'number' | 'string') => ({ partition: 'p', sort: { attribute: 's', type } })
  const placed = (type: 'number' | 'string', s: number | string, key: string) =>
    bytes(encodePlace(index(type), { p: 'x', s }, key) ?? '')
  const compareText = (a: string, b: string) => sign(Buffer.compare(Buffer.from(a), Buffer.from(b)))
  fc.assert(
    fc.property(awkward, awkward, number, number, awkward, awkward, (a, b, m, n, k, l) => {
      expect(sign(Buffer.compare(bytes(encodeKey(byText, ['x', a])), bytes(encodeKey(byText, ['x', b]))))).toBe(
        compareText(a, b),
      )
      expect(sign(Buffer.compare(bytes(encodeKey(byNumber, ['x', m])), bytes(encodeKey(byNumber, ['x', n]))))).toBe(
        m < n ? -1 : m > n ? 1 : 0,
      )
      const [first, second] = [encodeKey(bare, [k]), encodeKey(bare, [l])]
      if (a !== b)
        expect(sign(Buffer.compare(placed('string', a, first), placed('string', b, second)))).toBe(compareText(a, b))
      if (m !== n)
        expect(sign(Buffer.compare(placed('number', m, first), placed('number', n, second)))).toBe(m < n ? -1 : 1)
    }),
  )
})

test('a place written part by part is the place written whole, and gives its key back', () => {
  const target = Buffer.alloc(4_000)
  const place: Place = { partition: '', sort: 0, key: '' }
  fc.assert(
    fc.property(awkward, fc.oneof(awkward, number), awkward, (p, s, k) => {
      const type = typeof s === 'number' ? 'number' : 'string'
      const index = { partition: 'p', sort: { attribute: 's', type } } as const
      place.key = encodeKey(bare, [k])
      expect(findPlace(index, { p, s }, place)).toBe(true)
      const end = writePlace(place, target, 8)
      const whole = encodePlace(index, { p, s }, place.key) ?? ''
      expect(target.toString('latin1', 8, end)).toBe(whole)
      expect(keyOfPlace(index.sort, whole)).toBe(place.key)
    }),
  )
})
