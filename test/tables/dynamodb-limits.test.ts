import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { pack } from '../../src/tables/dynamodb/pack.ts'
import { rowBytes, toItem, wireBytes } from '../../src/tables/dynamodb/row.ts'
import type { Row, Write } from '../../src/tables/port.ts'
import { ok } from './dynamodb-double.ts'
import { type Fixture, openFixture, put, thing, upTo } from './dynamodb-fixture.ts'

let fixture: Fixture
beforeEach(async () => {
  fixture = await openFixture()
})
afterEach(() => fixture.end())

const rowMax = 400 * 1024
const MiB = 1024 * 1024
const rowOf = (bytes: number, id = 'a'): Row => {
  const rest = 'thing_id'.length + id.length + 'payload'.length
  return thing(id, { payload: new Uint8Array(bytes - rest) })
}

describe('a row', () => {
  test('E19 of exactly 400 KB, names included, is sent', async () => {
    expect(rowBytes(rowOf(rowMax))).toBe(rowMax)
    expect((await fixture.commit(put(rowOf(rowMax - 1)))).kind).toBe('done')
    expect((await fixture.commit(put(rowOf(rowMax)))).kind).toBe('done')
    expect(fixture.double.calls).toHaveLength(2)
  })

  test('E19 of a byte more is a limit that names the table, the row and the number, and is not sent', async () => {
    const verdict = await fixture.commit(put(rowOf(rowMax + 1)))
    expect(verdict).toMatchObject({
      kind: 'failed',
      fault: { code: 'TABLE_LIMIT', outcome: 'none', field: 'a row', limit: rowMax },
    })
    expect(verdict.kind === 'failed' && verdict.fault.message).toBe(
      'things: a row of 409601 bytes passes the limit of 409600',
    )
    expect(fixture.double.calls).toEqual([])
  })

  test('E19 of a byte more does not hold up its neighbours', async () => {
    const writes = [rowOf(rowMax + 1), rowOf(10 + 'payload'.length, 'b')].map((row): Write => ({ actions: [put(row)] }))
    expect((await fixture.tables.commit(writes)).map(({ kind }) => kind)).toEqual(['failed', 'done'])
  })

  test('what an update sends counts too', async () => {
    const payload = new Uint8Array(rowMax)
    const verdict = await fixture.commit({ kind: 'update', table: 'things', key: ['a'], set: { payload } })
    expect(verdict).toMatchObject({ kind: 'failed', fault: { code: 'TABLE_LIMIT' } })
  })

  test.each([
    ['a partition key', thing('x'.repeat(2_049)), 'thing_id', 2_048],
    ['the sort value of an index', thing('a', { shelf: 's', label: 'x'.repeat(1_025) }), 'label', 1_024],
    ['a number beyond the range', thing('a', { n: 1e126 }), 'n', 9.99e125],
  ])('%s that is too large names its attribute', async (_, row, field, limit) => {
    const verdict = await fixture.commit(put(row))
    expect(verdict).toMatchObject({ kind: 'failed', fault: { code: 'TABLE_LIMIT', field, limit } })
    expect(fixture.double.calls).toEqual([])
  })

  test.each([Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY])('with %d is a bug', async (n) => {
    await expect(fixture.commit(put(thing('a', { n })))).rejects.toThrow('cannot be stored')
    expect(fixture.double.calls).toEqual([])
  })

  test.each([
    [0, 1],
    [1, 2],
    [12, 2],
    [120, 3],
    [123, 3],
    [-1.5, 4],
    [1e21, 2],
    [1e20, 2],
    [0.001, 2],
    [123_456_789, 6],
  ])('the number %d counts %d bytes', (value, bytes) => {
    expect(rowBytes({ n: value })).toBe(1 + bytes)
  })
})

describe('a transaction', () => {
  const rows = (count: number) => upTo(count).map((n) => put(thing(`a${n}`)))

  test('E19 of a hundred actions is sent, of one more is a limit', async () => {
    expect(await fixture.commit(...rows(100))).toEqual({ kind: 'done' })
    const verdict = await fixture.commit(...rows(101))
    expect(verdict).toMatchObject({ kind: 'failed', fault: { code: 'TABLE_LIMIT', field: 'a write', limit: 100 } })
    expect(fixture.double.calls).toHaveLength(1)
  })

  test('E19 of exactly 4 MB is sent, of a byte more is a limit', async () => {
    const full = upTo(10).map((n) => put(rowOf(rowMax, `a${n}`)))
    const rest = 4 * MiB - 10 * rowMax
    expect(await fixture.commit(...full, put(rowOf(rest, 'b')))).toEqual({ kind: 'done' })
    const verdict = await fixture.commit(...full, put(rowOf(rest + 1, 'b')))
    expect(verdict).toMatchObject({ kind: 'failed', fault: { code: 'TABLE_LIMIT', field: 'a write', limit: 4 * MiB } })
    expect(fixture.double.calls).toHaveLength(1)
  })

  test('the limits that callers may ask for are the same', () => {
    expect(fixture.tables.limits).toMatchObject({ rowBytes: rowMax, actions: 100, writeBytes: 4 * MiB })
  })
})

describe('a batch', () => {
  const counts = () =>
    fixture.double.calls.map(({ input }) => (Object.values(input.RequestItems) as unknown[][]).flat().length)
  const plain = (count: number) => upTo(count).map((n): Write => ({ actions: [put(thing(`a${n}`))] }))

  test.each([
    [25, [25]],
    [26, [25, 1]],
    [51, [25, 25, 1]],
  ])('E19 of %d rows takes calls of %j', async (count, expected) => {
    const verdicts = await fixture.tables.commit(plain(count))
    expect(verdicts.every(({ kind }) => kind === 'done')).toBe(true)
    expect(counts().toSorted((a, b) => b - a)).toEqual(expected)
  })

  test('E19 fills a call to exactly 16 MB, and a byte more begins another', () => {
    const sizes = (last: number) => pack([16 * MiB - 10, last, 5], { items: 25, bytes: 16 * MiB }, (size) => size)
    expect(sizes(10)).toEqual([[16 * MiB - 10, 10], [5]])
    expect(sizes(11)).toEqual([[16 * MiB - 10], [11, 5]])
  })

  test('E19 no call is larger on the wire than 16 MB, whatever the encoding makes of its rows', async () => {
    // A control character is one byte in a row and six on the wire.
    const text = '\u0001'.repeat(rowMax - 100)
    const writes = upTo(25).map((n): Write => ({ actions: [put(thing(`a${n}`, { text }))] }))
    const verdicts = await fixture.tables.commit(writes)
    expect(verdicts.every(({ kind }) => kind === 'done')).toBe(true)
    expect(counts().reduce((sum, count) => sum + count)).toBe(25)
    for (const { bytes } of fixture.double.calls) expect(bytes).toBeLessThanOrEqual(16 * MiB)
    expect(Math.max(...counts())).toBe(6)
  })

  test('the size on the wire is what JSON makes of the row', () => {
    const row = { thing_id: 'zwölf "\n\u0001', empty: '', n: -1.5e-7, yes: true, no: false, bytes: new Uint8Array(7) }
    const { bytes: _, ...rest } = toItem(row)
    const text = JSON.stringify({ ...rest, bytes: { B: Buffer.from(row.bytes).toString('base64') } })
    expect(wireBytes(row)).toBe(Buffer.byteLength(text))
  })

  test('may hold rows of several tables, and deletes', async () => {
    fixture.double.script(ok())
    await fixture.tables.commit([
      { actions: [put(thing('a'))] },
      { actions: [{ kind: 'delete', table: 'things', key: ['b'] }] },
      { actions: [{ kind: 'delete', table: 'lines', key: ['log', 7] }] },
    ])
    expect(fixture.double.calls.map(({ input }) => input.RequestItems)).toEqual([
      {
        millrace_things: [
          { PutRequest: { Item: { thing_id: { S: 'a' } } } },
          { DeleteRequest: { Key: { thing_id: { S: 'b' } } } },
        ],
        millrace_lines: [{ DeleteRequest: { Key: { log_id: { S: 'log' }, sequence: { N: '7' } } } }],
      },
    ])
  })
})
