import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { type LmdbTables, lmdbLimits } from '../../src/tables/lmdb.ts'
import type { Action, Change, Write } from '../../src/tables/port.ts'
import { openAt, tempFolder } from './support/directory.ts'

let folder: ReturnType<typeof tempFolder>
let tables: LmdbTables
/** Stands between the adapter and the disk. */
let disk: (perform: () => Promise<boolean>) => Promise<boolean>
const fatal = vi.fn()

beforeEach(async () => {
  folder = tempFolder()
  disk = (perform) => perform()
  fatal.mockReset()
  tables = await openAt(folder.path, { fatal, transact: (perform) => disk(perform) })
})
afterEach(async () => {
  disk = (perform) => perform()
  await tables.close()
  folder.remove()
})

const put = (id: string, rest = {}, keep = false): Action => ({
  kind: 'put',
  table: 'things',
  row: { thing_id: id, ...rest },
  keep,
})
const add = (id: string, by: number, keep = false): Action => ({
  kind: 'update',
  table: 'things',
  key: [id],
  add: { n: by },
  keep,
})
const write = (...actions: Action[]): Write => ({ actions })
const failing = (code: number) => () => Promise.reject(Object.assign(new Error(`error ${code}`), { code }))
const nOf = async (id: string) => (await tables.get('things', [id]))?.['n']

/** A disk that holds each transaction until it is let go, and counts them. */
const slowDisk = () => {
  const held: (() => void)[] = []
  const state = { transactions: 0 }
  let arrived = () => {}
  disk = async (perform) => {
    state.transactions += 1
    await new Promise<void>((resolve) => {
      held.push(resolve)
      arrived()
    })
    return perform()
  }
  const reached = () =>
    new Promise<void>((resolve) => {
      arrived = resolve
      if (held.length > 0) resolve()
    })
  return { state, reached, release: () => held.shift()?.() }
}

describe('transactions', () => {
  test('what is given while a commit is under way goes together into the next one', async () => {
    const { state, reached, release } = slowDisk()
    const first = tables.commit([write(put('a', { n: 1 }))])
    await reached()
    const others = Array.from({ length: 20 }, (_, n) => tables.commit([write(add('a', 1)), write(put(`b${n}`))]))
    release()
    await first
    await reached()
    release()
    const verdicts = await Promise.all(others)
    expect(verdicts.flat().every(({ kind }) => kind === 'done')).toBe(true)
    expect(state.transactions).toBe(2)
    expect(await nOf('a')).toBe(21)
  })

  test('more than fits into one transaction goes into the ones after it, in order', async () => {
    const { state, reached, release } = slowDisk()
    const groups = Array.from({ length: 3 }, (_, group) =>
      tables.commit(Array.from({ length: 400 }, (_, n) => write(add('a', 1, true), put(`${group}/${n}`)))),
    )
    for (const group of groups) {
      await reached()
      release()
      await group
    }
    const counts = (await Promise.all(groups)).map((verdicts) =>
      verdicts.map((verdict) => (verdict.kind === 'done' ? verdict.row?.['n'] : undefined)),
    )
    expect(counts.flat()).toEqual(Array.from({ length: 1_200 }, (_, n) => n + 1))
    expect(state.transactions).toBe(3)
    expect(await nOf('a')).toBe(1_200)
  })

  test.each([false, true])(
    'what was decided on a commit that then failed is decided again (kept: %s)',
    async (keep) => {
      await tables.commit([write(put('b', { n: 1 }, keep))])
      let letGo = () => {}
      let reached = () => {}
      const arrived = new Promise<void>((resolve) => {
        reached = resolve
      })
      disk = async () => {
        disk = (next) => next()
        reached()
        await new Promise<void>((resolve) => {
          letGo = resolve
        })
        throw Object.assign(new Error('no space'), { code: 28 })
      }
      const first = tables.commit([
        write(put('a', {}, keep)),
        write({ kind: 'delete', table: 'things', key: ['b'] }),
        write(add('c', 5, keep)),
      ])
      await arrived
      const second = tables.commit([
        write({ ...put('a', { n: 2 }, keep), if: { test: 'absent' } } as Action),
        write({ ...add('b', 1, keep), if: { test: 'present' } } as Action),
        write(add('c', 1, keep)),
      ])
      letGo()
      expect((await first).map(({ kind }) => kind)).toEqual(['failed', 'failed', 'failed'])
      expect((await second).map(({ kind }) => kind)).toEqual(['done', 'done', 'done'])
      expect([await nOf('a'), await nOf('b'), await nOf('c')]).toEqual([2, 2, 1])
    },
  )

  test('a write sees what the commit under way will have written, and is told only when both stand', async () => {
    const { reached, release } = slowDisk()
    const first = tables.commit([write(put('a', { n: 1 }, true))])
    await reached()
    const second = tables.commit([write({ ...put('a'), if: { test: 'absent' } } as Action), write(add('a', 1))])
    expect(await nOf('a')).toBeUndefined()
    release()
    await first
    await reached()
    expect(await nOf('a')).toBe(1)
    release()
    expect(await second).toMatchObject([
      { kind: 'refused', row: { thing_id: 'a', n: 1 } },
      { kind: 'done', row: { n: 2 } },
    ])
    expect(await nOf('a')).toBe(2)
  })

  test('nobody reads a row before it is durable, kept or not', async () => {
    await tables.commit([write(put('kept', { n: 1, colour: 'red', size: 1 }, true)), write(put('plain', { n: 1 }))])
    const { reached, release } = slowDisk()
    const writing = tables.commit([
      write({ kind: 'update', table: 'things', key: ['kept'], set: { n: 2, colour: 'blue' }, keep: true }),
      write(put('plain', { n: 2 })),
      write({ kind: 'put', table: 'lines', row: { log_id: 'log', sequence: 1 } }),
    ])
    await reached()
    expect([await nOf('kept'), await nOf('plain')]).toEqual([1, 1])
    expect((await tables.query('lines', { partition: 'log', limit: 5 })).entries).toEqual([])
    expect((await tables.lookup('things', 'by_colour', { partition: 'blue', limit: 5 })).entries).toEqual([])
    release()
    await writing
    expect([await nOf('kept'), await nOf('plain')]).toEqual([2, 2])
    expect((await tables.lookup('things', 'by_colour', { partition: 'blue', limit: 5 })).entries).toEqual([['kept']])
  })

  test('reads agree while a commit ends: no row is new in a query and old in a get', async () => {
    await tables.commit([write({ kind: 'put', table: 'lines', row: { log_id: 'log', sequence: 1, n: 0 }, keep: true })])
    let running = true
    const writer = (async () => {
      for (let n = 1; n <= 200; n++)
        await tables.commit([write({ kind: 'update', table: 'lines', key: ['log', 1], set: { n }, keep: true })])
      running = false
    })()
    while (running) {
      const queried = (await tables.query('lines', { partition: 'log', limit: 1 })).entries[0]?.['n'] as number
      const got = (await tables.get('lines', ['log', 1]))?.['n'] as number
      expect(got).toBeGreaterThanOrEqual(queried)
      await new Promise(setImmediate)
    }
    await writer
  })

  test('a malformed group is thrown back alone: what came with it is written, and nothing of it stays', async () => {
    const { reached, release } = slowDisk()
    const first = tables.commit([write(put('a', { n: 'text' }))])
    await reached()
    const malformed = tables.commit([write(put('b')), write(add('a', 1))])
    const sound = tables.commit([write(put('c'))])
    release()
    await first
    await reached()
    release()
    await expect(malformed).rejects.toThrow(/number/)
    expect((await sound)[0]?.kind).toBe('done')
    expect(await tables.get('things', ['b'])).toBeUndefined()
    expect(await tables.get('things', ['c'])).toBeDefined()
  })

  test('a row or a key that is too large fails alone', async () => {
    const verdicts = await tables.commit([
      write(put('a', { text: 'x'.repeat(lmdbLimits.rowBytes) })),
      write(put('k'.repeat(3_000))),
      write(put('i', { colour: 'c'.repeat(3_000), size: 1 })),
      write(put('long', { text: 'ü'.repeat(150_000) })),
    ])
    const codes = verdicts.map((verdict) => (verdict.kind === 'failed' ? verdict.fault.code : verdict.kind))
    expect(codes).toEqual(['TABLE_LIMIT', 'TABLE_LIMIT', 'TABLE_LIMIT', 'done'])
    expect((await tables.get('things', ['long']))?.['text']).toBe('ü'.repeat(150_000))
  })

  test('rows outlive the process that wrote them, with their indexes and their expiry', async () => {
    await tables.commit([write(put('a', { colour: 'red', size: 3, ttl: 10 }, true)), write(put('b', { ttl: 20 }))])
    await tables.close()
    tables = await openAt(folder.path)
    expect(await tables.get('things', ['a'])).toEqual({ thing_id: 'a', colour: 'red', size: 3, ttl: 10 })
    expect((await tables.lookup('things', 'by_colour', { partition: 'red', limit: 5 })).entries).toEqual([['a']])
    expect(await tables.purge(15, 10)).toBe(1)
    expect(await tables.get('things', ['b'])).toBeDefined()
  })

  test('of one expiry, rows go in the order of their keys', async () => {
    await tables.commit(['c', 'a', 'b'].map((id) => write(put(id, { ttl: 5 }))))
    expect(await tables.purge(6, 2)).toBe(2)
    expect(await tables.get('things', ['c'])).toBeDefined()
    const heard: Change[] = []
    tables.watch('things', (changes) => heard.push(...changes))
    expect(await tables.purge(6, 2)).toBe(1)
    expect(heard).toEqual([{ key: ['c'], row: undefined }])
  })

  test('closing ends what is under way first', async () => {
    const writing = Promise.all(Array.from({ length: 50 }, (_, n) => tables.commit([write(put(`p${n}`, { n }))])))
    await Promise.all([tables.close(), tables.close()])
    expect((await writing).flat().every(({ kind }) => kind === 'done')).toBe(true)
    tables = await openAt(folder.path)
    expect(await nOf('p49')).toBe(49)
  })
})

describe('K03 a full disk', () => {
  test.each([28, 122, -30792])(
    'error %s is told to the caller, nothing is written, and work goes on when there is room',
    async (code) => {
      await tables.commit([write(put('a', { n: 1, colour: 'red', size: 1 }, true))])
      const healthy = disk
      const heard: Change[] = []
      tables.watch('things', (changes) => heard.push(...changes))
      disk = failing(code)
      const verdicts = await tables.commit([write(add('a', 1, true)), write(put('b', {}, true))])
      for (const verdict of verdicts)
        expect(verdict).toMatchObject({
          kind: 'failed',
          fault: { code: 'TABLE_FULL', outcome: 'none', retry: 'later' },
        })
      await expect(tables.purge(1, 1)).resolves.toBe(0)
      expect([await nOf('a'), await nOf('b'), heard.length]).toEqual([1, undefined, 0])
      disk = healthy
      expect((await tables.commit([write(add('a', 1, true))]))[0]).toMatchObject({ kind: 'done', row: { n: 2 } })
      expect(fatal).not.toHaveBeenCalled()
    },
  )
})

test('a flush that failed ends the process: nobody knows what the disk holds', async () => {
  disk = failing(5)
  const [verdict] = await tables.commit([write(put('a'))])
  expect(verdict).toMatchObject({ kind: 'failed', fault: { code: 'TABLE_UNAVAILABLE', outcome: 'unknown' } })
  expect(fatal).toHaveBeenCalledTimes(1)
  disk = (perform) => perform()
  const [after] = await tables.commit([write(put('b'))])
  expect(after?.kind).toBe('failed')
  await expect(tables.get('things', ['b'])).rejects.toMatchObject({ code: 'TABLE_UNAVAILABLE' })
})

test('a row that many writes of one transaction change is told to watchers each time and stored as the last one left it', async () => {
  const heard: (number | undefined)[] = []
  tables.watch('things', (changes) => heard.push(...changes.map(({ row }) => row?.['n'] as number | undefined)))
  await tables.commit([
    write(put('a', { n: 1 })),
    write(add('a', 1)),
    write({ kind: 'delete', table: 'things', key: ['a'] }),
    write(add('a', 5)),
  ])
  expect(heard).toEqual([1, 2, undefined, 5])
  expect(await nOf('a')).toBe(5)
})

test('no more rows are kept than allowed, and those that are not kept are right all the same', async () => {
  await tables.close()
  const { lmdbDeps } = await import('./support/directory.ts')
  const { openLmdb } = await import('../../src/tables/lmdb.ts')
  const { contractSchemas } = await import('../contract/tables.ts')
  tables = await openLmdb(lmdbDeps(), { path: folder.path, schemas: contractSchemas, keptMax: 3 })
  const ids = Array.from({ length: 10 }, (_, n) => `k${n}`)
  for (let round = 0; round < 3; round++) await tables.commit(ids.map((id) => write(add(id, 1, true))))
  await tables.commit(ids.slice(0, 2).map((id) => write(add(id, 1))))
  await tables.commit(ids.map((id) => write(add(id, 1, true))))
  expect(await Promise.all(ids.map(nOf))).toEqual([5, 5, 4, 4, 4, 4, 4, 4, 4, 4])
})
