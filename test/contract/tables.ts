import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { Action, Condition, Key, Row, TableSchema, Tables, Verdict, Write } from '../../src/tables/port.ts'

/** Two tables that between them have everything a schema can have. */
export const contractSchemas: readonly TableSchema[] = [
  {
    name: 'things',
    partition: 'thing_id',
    ttl: 'ttl',
    indexes: {
      by_colour: { partition: 'colour', sort: { attribute: 'size', type: 'number' } },
      by_label: { partition: 'shelf', sort: { attribute: 'label', type: 'string' } },
    },
  },
  { name: 'lines', partition: 'log_id', sort: { attribute: 'sequence', type: 'number' }, ttl: 'ttl', indexes: {} },
  { name: 'slots', partition: 'lane', sort: { attribute: 'position', type: 'string' }, indexes: {} },
]

export interface TablesFixture {
  readonly tables: Tables
  /** Ends what the fixture started. */
  readonly end: () => Promise<void>
  /** Where several tests share one server: makes the keys of one test its own. */
  readonly prefix?: string
  /** What the backend cannot do and no adapter can mend, with the reason; the suite then leaves those sentences out. */
  readonly lacks?: { readonly transactions?: string }
}

/** One test per sentence of src/tables/port.ts. */
export const tablesContract = (name: string, open: () => Promise<TablesFixture>): void => {
  describe(`tables contract: ${name}`, () => {
    let fixture: TablesFixture
    let tables: Tables
    beforeEach(async () => {
      fixture = await open()
      tables = fixture.tables
    })
    afterEach(() => fixture.end())

    const id = (text: string) => `${fixture.prefix ?? ''}${text}`
    const key = (text: string, sort?: number | string): Key => (sort === undefined ? [id(text)] : [id(text), sort])
    const thing = (text: string, rest: Row = {}): Row => ({ thing_id: id(text), ...rest })
    const line = (log: string, sequence: number, rest: Row = {}): Row => ({ log_id: id(log), sequence, ...rest })
    const put = (row: Row, condition?: Condition): Action => ({
      kind: 'put',
      table: 'things',
      row,
      ...(condition ? { if: condition } : {}),
    })
    const putLine = (row: Row): Action => ({ kind: 'put', table: 'lines', row })
    const one = async (...actions: Action[]): Promise<Verdict> => {
      const [verdict] = await tables.commit([{ actions }])
      if (!verdict) throw new Error('no verdict')
      return verdict
    }
    const eventually = async <T>(look: () => Promise<T>, good: (value: T) => boolean): Promise<T> => {
      for (let tries = 0; tries < 200; tries++) {
        const value = await look()
        if (good(value)) return value
      }
      return look()
    }

    describe('rows', () => {
      test('a row that was put is read back with every type of value', async () => {
        const row = thing('a', {
          text: 'zwölf\n"quoted" \u{1f680}',
          empty: '',
          zero: 0,
          negative: -1.5,
          large: Number.MAX_SAFE_INTEGER,
          yes: true,
          no: false,
          bytes: Uint8Array.from([0, 255, 1, 254]),
          name: 'a reserved word elsewhere',
          size: 7,
        })
        expect((await one(put(row))).kind).toBe('done')
        expect(plain(await tables.get('things', key('a')))).toEqual(plain(row))
      })

      test('a row that is not there reads as undefined', async () => {
        expect(await tables.get('things', key('nowhere'))).toBeUndefined()
        expect(await tables.get('lines', key('nowhere', 1))).toBeUndefined()
      })

      test('a put replaces the whole row', async () => {
        await one(put(thing('a', { old: 1 })))
        await one(put(thing('a', { fresh: 2 })))
        expect(await tables.get('things', key('a'))).toEqual(thing('a', { fresh: 2 }))
      })

      test('a row written is not the row in our hands: later changes to either leave the other alone', async () => {
        const row: Record<string, string | number> = { thing_id: id('a'), n: 1 }
        await one(put({ ...row }))
        const read = await tables.get('things', key('a'))
        expect(read).toEqual(row)
        row['n'] = 2
        expect((await tables.get('things', key('a')))?.['n']).toBe(1)
      })

      test('an update sets, adds and removes, and answers with the row after it', async () => {
        await one(put(thing('a', { n: 1, gone: true, kept: 'k' })))
        const verdict = await one({
          kind: 'update',
          table: 'things',
          key: key('a'),
          set: { fresh: 'f' },
          add: { n: 2, m: -3 },
          remove: ['gone', 'never'],
        })
        const after = thing('a', { n: 3, m: -3, kept: 'k', fresh: 'f' })
        expect(verdict).toEqual({ kind: 'done', row: after })
        expect(await tables.get('things', key('a'))).toEqual(after)
      })

      test('an update of a row that is not there creates it', async () => {
        await one({ kind: 'update', table: 'lines', key: key('log', 4), add: { n: 1 } })
        expect(await tables.get('lines', key('log', 4))).toEqual(line('log', 4, { n: 1 }))
      })

      test('an update that only removes must say that the row is there', async () => {
        const action: Action = { kind: 'update', table: 'things', key: key('a'), remove: ['n'] }
        await expect(one(action)).rejects.toThrow('must say that the row is there')
        expect((await one({ ...action, if: { test: 'present' } })).kind).toBe('refused')
        expect(await tables.get('things', key('a'))).toBeUndefined()
      })

      test('a delete removes the row, and of a row that is not there it is done', async () => {
        await one(put(thing('a')))
        expect((await one({ kind: 'delete', table: 'things', key: key('a') })).kind).toBe('done')
        expect((await one({ kind: 'delete', table: 'things', key: key('a') })).kind).toBe('done')
        expect(await tables.get('things', key('a'))).toBeUndefined()
      })

      test('getMany answers in the order of the keys, also beyond a hundred, with undefined for what is not there', async () => {
        const count = 130
        await tables.commit(range(count).map((n) => ({ actions: [put(thing(`m${n}`, { n }))] })))
        const keys = range(count).map((n) => key(`m${count - 1 - n}`))
        const rows = await tables.getMany('things', [...keys, key('nowhere')])
        expect(rows.map((row) => row?.['n'])).toEqual([...range(count).reverse(), undefined])
        expect(await tables.getMany('things', [])).toEqual([])
      })
    })

    describe('conditions', () => {
      const stored: Row = { text: 'm', n: 5, yes: true, bytes: Uint8Array.from([1, 2]) }
      const cases: readonly (readonly [string, Condition, boolean])[] = [
        ['present', { test: 'present' }, true],
        ['absent', { test: 'absent' }, false],
        ['has', { test: 'has', attribute: 'n' }, true],
        ['has what is not there', { test: 'has', attribute: 'x' }, false],
        ['lacks', { test: 'lacks', attribute: 'x' }, true],
        ['lacks what is there', { test: 'lacks', attribute: 'n' }, false],
        ['= number', { test: '=', attribute: 'n', value: 5 }, true],
        ['= other number', { test: '=', attribute: 'n', value: 6 }, false],
        ['= other type', { test: '=', attribute: 'n', value: '5' }, false],
        ['= bytes', { test: '=', attribute: 'bytes', value: Uint8Array.from([1, 2]) }, true],
        ['= boolean', { test: '=', attribute: 'yes', value: true }, true],
        ['= absent attribute', { test: '=', attribute: 'x', value: 0 }, false],
        ['<', { test: '<', attribute: 'n', value: 6 }, true],
        ['< equal', { test: '<', attribute: 'n', value: 5 }, false],
        ['<= equal', { test: '<=', attribute: 'n', value: 5 }, true],
        ['>', { test: '>', attribute: 'n', value: 4 }, true],
        ['> text', { test: '>', attribute: 'text', value: 'l' }, true],
        ['>= below', { test: '>=', attribute: 'n', value: 6 }, false],
        ['< absent attribute', { test: '<', attribute: 'x', value: 9 }, false],
        [
          'all',
          { test: 'all', of: [{ test: 'present' }, { test: 'all', of: [{ test: '=', attribute: 'n', value: 5 }] }] },
          true,
        ],
        ['all with one false', { test: 'all', of: [{ test: 'present' }, { test: 'absent' }] }, false],
        ['any', { test: 'any', of: [{ test: 'absent' }, { test: '=', attribute: 'text', value: 'm' }] }, true],
        ['any with none', { test: 'any', of: [{ test: 'absent' }, { test: 'lacks', attribute: 'n' }] }, false],
      ]
      test.each(cases)('%s', async (_, condition, expected) => {
        await one(put(thing('a', stored)))
        const verdict = await one({
          kind: 'update',
          table: 'things',
          key: key('a'),
          set: { touched: 1 },
          if: condition,
        })
        expect(verdict.kind).toBe(expected ? 'done' : 'refused')
        expect((await tables.get('things', key('a')))?.['touched']).toBe(expected ? 1 : undefined)
      })

      test('absent holds where there is no row, and then a second put is refused with the row that is there', async () => {
        expect((await one(put(thing('a', { n: 1 }), { test: 'absent' }))).kind).toBe('done')
        const verdict = await one(put(thing('a', { n: 2 }), { test: 'absent' }))
        expect(verdict).toEqual({ kind: 'refused', action: 0, row: thing('a', { n: 1 }) })
      })

      test('a condition on a row that is not there is refused with no row, and creates nothing', async () => {
        const verdict = await one({
          kind: 'update',
          table: 'things',
          key: key('a'),
          set: { n: 1 },
          if: { test: '=', attribute: 'n', value: 0 },
        })
        expect(verdict).toEqual({ kind: 'refused', action: 0, row: undefined })
        expect(await tables.get('things', key('a'))).toBeUndefined()
      })

      test('a conditional delete removes only what it describes', async () => {
        await one(put(thing('a', { n: 1 })))
        const action = (n: number): Action => ({
          kind: 'delete',
          table: 'things',
          key: key('a'),
          if: { test: '=', attribute: 'n', value: n },
        })
        expect(await one(action(2))).toEqual({ kind: 'refused', action: 0, row: thing('a', { n: 1 }) })
        expect((await one(action(1))).kind).toBe('done')
        expect(await tables.get('things', key('a'))).toBeUndefined()
      })
    })

    describe('writes of several actions', () => {
      const transactions = (title: string, body: () => Promise<void>) =>
        test(title, async () => {
          if (fixture.lacks?.transactions) expect(fixture.lacks.transactions).not.toBe('')
          else await body()
        })

      transactions('all take effect, on several tables', async () => {
        const verdict = await one(
          put(thing('a', { n: 1 }), { test: 'absent' }),
          putLine(line('a', 1)),
          { kind: 'check', table: 'things', key: key('b'), if: { test: 'absent' } },
          { kind: 'update', table: 'things', key: key('c'), add: { n: 1 } },
        )
        expect(verdict.kind).toBe('done')
        expect(await tables.get('things', key('a'))).toEqual(thing('a', { n: 1 }))
        expect(await tables.get('lines', key('a', 1))).toEqual(line('a', 1))
        expect(await tables.get('things', key('b'))).toBeUndefined()
        expect(await tables.get('things', key('c'))).toEqual(thing('c', { n: 1 }))
      })

      transactions('none takes effect if one is refused; the verdict names it and carries its row', async () => {
        await one(put(thing('b', { n: 9 })))
        const verdict = await one(put(thing('a')), put(thing('b', { n: 0 }), { test: 'absent' }), putLine(line('a', 1)))
        expect(verdict).toEqual({ kind: 'refused', action: 1, row: thing('b', { n: 9 }) })
        expect(await tables.get('things', key('a'))).toBeUndefined()
        expect(await tables.get('lines', key('a', 1))).toBeUndefined()
        expect(await tables.get('things', key('b'))).toEqual(thing('b', { n: 9 }))
      })

      transactions('a check that fails refuses the rest', async () => {
        const verdict = await one(
          { kind: 'check', table: 'things', key: key('b'), if: { test: 'present' } },
          put(thing('a')),
        )
        expect(verdict).toEqual({ kind: 'refused', action: 0, row: undefined })
        expect(await tables.get('things', key('a'))).toBeUndefined()
      })

      transactions('of racing transactions with one condition exactly one is done', async () => {
        const racers = range(8).map((n) => one(put(thing('race', { n }), { test: 'absent' }), put(thing(`own${n}`))))
        const verdicts = await Promise.all(racers)
        const winners = verdicts.flatMap((verdict, n) => (verdict.kind === 'done' ? [n] : []))
        expect(winners).toHaveLength(1)
        expect((await tables.get('things', key('race')))?.['n']).toBe(winners[0])
        const own = await tables.getMany(
          'things',
          range(8).map((n) => key(`own${n}`)),
        )
        expect(own.filter((row) => row !== undefined)).toHaveLength(1)
      })

      test('two actions on one row are a bug, and nothing is written', async () => {
        await expect(tables.commit([{ actions: [put(thing('a')), put(thing('a'))] }])).rejects.toThrow()
        expect(await tables.get('things', key('a'))).toBeUndefined()
      })
    })

    describe('groups of writes', () => {
      test('each write has its own verdict, in order; a refused one does not hold up its neighbours', async () => {
        await one(put(thing('b')))
        const verdicts = await tables.commit([
          { actions: [put(thing('a'))] },
          { actions: [put(thing('b', { n: 1 }), { test: 'absent' })] },
          { actions: [put(thing('c'), { test: 'absent' })] },
        ])
        expect(verdicts.map((verdict) => verdict.kind)).toEqual(['done', 'refused', 'done'])
        expect(await tables.get('things', key('c'))).toEqual(thing('c'))
      })

      test('writes of a group on the same row take effect in their order', async () => {
        const claim = (n: number): Write => ({
          actions: [
            {
              kind: 'update',
              table: 'things',
              key: key('a'),
              set: { n: n + 1 },
              if: { test: '=', attribute: 'n', value: n },
            },
          ],
        })
        const verdicts = await tables.commit([
          { actions: [put(thing('a', { n: 0 }))] },
          claim(0),
          claim(1),
          claim(1),
          { actions: [{ kind: 'delete', table: 'things', key: key('b') }] },
          { actions: [put(thing('b', { n: 1 }))] },
          { actions: [put(thing('b', { n: 2 }))] },
        ])
        expect(verdicts.map((verdict) => verdict.kind)).toEqual([
          'done',
          'done',
          'done',
          'refused',
          'done',
          'done',
          'done',
        ])
        expect((await tables.get('things', key('a')))?.['n']).toBe(2)
        expect((await tables.get('things', key('b')))?.['n']).toBe(2)
      })

      test('a group larger than any one call of a service is written whole', async () => {
        const payload = new Uint8Array(1_000).fill(7)
        const verdicts = await tables.commit(
          range(120).map((n) => ({ actions: [putLine(line('bulk', n + 1, { payload }))], lane: 'log' as const })),
        )
        expect(verdicts.every((verdict) => verdict.kind === 'done')).toBe(true)
        const { entries } = await tables.query('lines', { partition: id('bulk'), limit: 200 })
        expect(entries).toHaveLength(120)
      })

      test('an empty group is answered with nothing', async () => {
        expect(await tables.commit([])).toEqual([])
      })

      test('of racing claims on one row exactly one wins', async () => {
        await one(put(thing('job', { state: 'SCHEDULED', attempt: 0 })))
        const claim = (worker: number): Action => ({
          kind: 'update',
          table: 'things',
          key: key('job'),
          set: { state: 'RUNNING', attempt: 1, worker },
          if: {
            test: 'all',
            of: [
              { test: '=', attribute: 'state', value: 'SCHEDULED' },
              { test: '=', attribute: 'attempt', value: 0 },
            ],
          },
        })
        const verdicts = await Promise.all(range(10).map((worker) => one(claim(worker))))
        const winners = verdicts.flatMap((verdict, worker) => (verdict.kind === 'done' ? [worker] : []))
        expect(winners).toHaveLength(1)
        expect((await tables.get('things', key('job')))?.['worker']).toBe(winners[0])
        const losers = verdicts.filter((verdict) => verdict.kind === 'refused')
        expect(losers.every((verdict) => verdict.row?.['worker'] === winners[0])).toBe(true)
      })

      test('a table that nobody declared is a bug', async () => {
        await expect(tables.commit([{ actions: [{ kind: 'put', table: 'nope', row: {} }] }])).rejects.toThrow()
      })
    })

    describe('queries', () => {
      const fill = (count: number) =>
        tables.commit(range(count).map((n) => ({ actions: [putLine(line('log', (n + 1) * 10, { n }))] })))
      const sequences = (rows: readonly Row[]) => rows.map((row) => row['sequence'])

      test('rows come in the order of their sort values, numbers as numbers', async () => {
        await tables.commit([9, 100, 20, 3].map((n) => ({ actions: [putLine(line('log', n))] })))
        await one(putLine(line('other', 5)))
        const ascending = await tables.query('lines', { partition: id('log'), limit: 10 })
        expect(sequences(ascending.entries)).toEqual([3, 9, 20, 100])
        expect(ascending.next).toBeUndefined()
        const descending = await tables.query('lines', { partition: id('log'), descending: true, limit: 10 })
        expect(sequences(descending.entries)).toEqual([100, 20, 9, 3])
      })

      test('both bounds are included, and either may be left out', async () => {
        await fill(5)
        const between = await tables.query('lines', { partition: id('log'), from: 20, to: 40, limit: 10 })
        expect(sequences(between.entries)).toEqual([20, 30, 40])
        const from = await tables.query('lines', { partition: id('log'), from: 21, limit: 10 })
        expect(sequences(from.entries)).toEqual([30, 40, 50])
        const to = await tables.query('lines', { partition: id('log'), to: 39, descending: true, limit: 2 })
        expect(sequences(to.entries)).toEqual([30, 20])
      })

      test.each([false, true])('pages join without gap or repeat (descending: %s)', async (descending) => {
        await fill(25)
        const seen: unknown[] = []
        let after: string | undefined
        for (let pages = 0; pages < 20; pages++) {
          const page = await tables.query('lines', {
            partition: id('log'),
            from: 20,
            to: 240,
            descending,
            limit: 4,
            ...(after === undefined ? {} : { after }),
          })
          expect(page.entries.length).toBeLessThanOrEqual(4)
          seen.push(...sequences(page.entries))
          after = page.next
          if (after === undefined) break
        }
        const all = range(23).map((n) => (n + 2) * 10)
        expect(seen).toEqual(descending ? all.reverse() : all)
      })

      test('text sort values come in their order', async () => {
        const rows = ['b', 'a#2', 'a#10', 'c'].map((position) => ({ lane: id('q'), position }))
        await tables.commit(rows.map((row) => ({ actions: [{ kind: 'put', table: 'slots', row } as const] })))
        const page = await tables.query('slots', { partition: id('q'), from: 'a', to: 'b', limit: 10 })
        expect(page.entries.map((row) => row['position'])).toEqual(['a#10', 'a#2', 'b'])
      })

      test('a partition without rows is an empty page', async () => {
        expect(await tables.query('lines', { partition: id('nowhere'), limit: 3 })).toEqual({ entries: [] })
      })
    })

    describe('indexes', () => {
      const lookup = (colour: string, rest: object = {}) =>
        tables.lookup('things', 'by_colour', { partition: id(colour), limit: 10, ...rest })
      const ids = (keys: readonly Key[]) => keys.map(([partition]) => partition)

      test('hold keys in the order of the sort value, only of rows that have both attributes', async () => {
        await tables.commit([
          { actions: [put(thing('a', { colour: id('red'), size: 20 }))] },
          { actions: [put(thing('b', { colour: id('red'), size: 3 }))] },
          { actions: [put(thing('c', { colour: id('red') }))] },
          { actions: [put(thing('d', { colour: id('blue'), size: 1 }))] },
          { actions: [put(thing('e', { size: 1 }))] },
        ])
        const page = await eventually(
          () => lookup('red'),
          (found) => found.entries.length === 2,
        )
        expect(ids(page.entries)).toEqual([id('b'), id('a')])
        expect(ids((await lookup('red', { from: 4 })).entries)).toEqual([id('a')])
        expect(ids((await lookup('red', { to: 3 })).entries)).toEqual([id('b')])
        expect(ids((await lookup('red', { descending: true, limit: 1 })).entries)).toEqual([id('a')])
        expect((await lookup('green')).entries).toEqual([])
      })

      test('follow the row: moved, taken out, deleted', async () => {
        await one(put(thing('a', { colour: id('red'), size: 1 })))
        await one({ kind: 'update', table: 'things', key: key('a'), set: { colour: id('blue') } })
        const moved = await eventually(
          () => lookup('blue'),
          (found) => found.entries.length === 1,
        )
        expect(ids(moved.entries)).toEqual([id('a')])
        expect((await lookup('red')).entries).toEqual([])
        await one({ kind: 'update', table: 'things', key: key('a'), remove: ['size'], if: { test: 'present' } })
        const out = await eventually(
          () => lookup('blue'),
          (found) => found.entries.length === 0,
        )
        expect(out.entries).toEqual([])
        await one({ kind: 'update', table: 'things', key: key('a'), set: { size: 2 } })
        await one({ kind: 'delete', table: 'things', key: key('a') })
        const gone = await eventually(
          () => lookup('blue'),
          (found) => found.entries.length === 0,
        )
        expect(gone.entries).toEqual([])
      })

      test('pages join without gap or repeat, also among equal sort values', async () => {
        await tables.commit(
          range(10).map((n) => ({ actions: [put(thing(`p${n}`, { colour: id('red'), size: Math.floor(n / 4) }))] })),
        )
        await eventually(
          () => lookup('red'),
          (found) => found.entries.length === 10,
        )
        const seen: string[] = []
        let after: string | undefined
        for (let pages = 0; pages < 10; pages++) {
          const page = await lookup('red', { limit: 3, ...(after === undefined ? {} : { after }) })
          seen.push(...ids(page.entries))
          after = page.next
          if (after === undefined) break
        }
        expect(seen.toSorted()).toEqual(range(10).map((n) => id(`p${n}`)))
      })

      test('text sort values order an index too', async () => {
        await tables.commit(
          ['m', 'a', 'z'].map((label) => ({ actions: [put(thing(label, { shelf: id('s'), label }))] })),
        )
        const look = () => tables.lookup('things', 'by_label', { partition: id('s'), limit: 10, descending: true })
        const page = await eventually(look, (found) => found.entries.length === 3)
        expect(ids(page.entries)).toEqual([id('z'), id('m'), id('a')])
      })
    })

    test('limits are stated, so that callers can ask instead of knowing the backend', () => {
      expect(tables.limits.rowBytes).toBeGreaterThanOrEqual(380 * 1024)
      expect(tables.limits.actions).toBeGreaterThanOrEqual(10)
      expect(tables.limits.groups).toBeGreaterThanOrEqual(1)
      expect(tables.limits.groupWrites).toBeGreaterThanOrEqual(25)
    })

    test('a call after close fails', async () => {
      await tables.close()
      await expect(tables.get('things', key('a'))).rejects.toMatchObject({ code: 'TABLE_CLOSED' })
      await expect(tables.commit([{ actions: [put(thing('a'))] }])).rejects.toMatchObject({ code: 'TABLE_CLOSED' })
    })
  })
}

const range = (count: number): number[] => Array.from({ length: count }, (_, n) => n)

/** Buffers and typed arrays of equal bytes are the same value to us. */
const plain = (row: Row | undefined): unknown =>
  row &&
  Object.fromEntries(
    Object.entries(row).map(([name, value]) => [name, value instanceof Uint8Array ? [...value] : value]),
  )
