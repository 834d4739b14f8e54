import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { Change, LocalTables, Row } from '../../src/tables/port.ts'

export interface LocalTablesFixture {
  readonly tables: LocalTables
  readonly end: () => Promise<void>
}

/** What a backend in this process promises beyond the port. Uses the schemas of the tables contract. */
export const localTablesContract = (name: string, open: () => Promise<LocalTablesFixture>): void => {
  describe(`local tables contract: ${name}`, () => {
    let fixture: LocalTablesFixture
    let tables: LocalTables
    beforeEach(async () => {
      fixture = await open()
      tables = fixture.tables
    })
    afterEach(() => fixture.end())
    const put = (table: string, row: Row) => tables.commit([{ actions: [{ kind: 'put', table, row }] }])

    test('a watcher hears of each committed change of its table, and of no other', async () => {
      const heard: Change[] = []
      const stop = tables.watch('things', (changes) => heard.push(...changes))
      await put('things', { thing_id: 'a', n: 1 })
      await put('lines', { log_id: 'a', sequence: 1 })
      await tables.commit([{ actions: [{ kind: 'delete', table: 'things', key: ['a'] }] }])
      stop()
      await put('things', { thing_id: 'b' })
      expect(heard).toEqual([
        { key: ['a'], row: { thing_id: 'a', n: 1 } },
        { key: ['a'], row: undefined },
      ])
    })

    test('a watcher hears nothing of a write that was refused', async () => {
      await put('things', { thing_id: 'a' })
      const heard: Change[] = []
      tables.watch('things', (changes) => heard.push(...changes))
      await tables.commit([
        { actions: [{ kind: 'put', table: 'things', row: { thing_id: 'a' }, if: { test: 'absent' } }] },
      ])
      expect(heard).toEqual([])
    })

    test('a watcher that looks sees what it was told of', async () => {
      const looked: Promise<unknown>[] = []
      tables.watch('things', (changes) => {
        for (const change of changes) looked.push(tables.get('things', change.key))
      })
      await put('things', { thing_id: 'a', n: 1 })
      expect(await Promise.all(looked)).toEqual([{ thing_id: 'a', n: 1 }])
    })

    test('a write of several actions is answered with the row after the first', async () => {
      const [verdict] = await tables.commit([
        {
          actions: [
            { kind: 'update', table: 'things', key: ['a'], set: { n: 1 } },
            { kind: 'put', table: 'things', row: { thing_id: 'b' } },
          ],
        },
      ])
      expect(verdict).toEqual({ kind: 'done', row: { thing_id: 'a', n: 1 } })
    })

    test('purge deletes expired rows, oldest first and no more than asked for', async () => {
      await put('things', { thing_id: 'old', ttl: 100 })
      await put('things', { thing_id: 'older', ttl: 50, colour: 'red', size: 1 })
      await put('lines', { log_id: 'log', sequence: 1, ttl: 60 })
      await put('things', { thing_id: 'fresh', ttl: 200 })
      await put('things', { thing_id: 'always' })
      expect(await tables.purge(150, 1)).toBe(1)
      expect(await tables.get('things', ['older'])).toBeUndefined()
      expect(await tables.get('things', ['old'])).toBeDefined()
      expect(await tables.purge(150, 10)).toBe(2)
      expect(await tables.purge(150, 10)).toBe(0)
      expect(await tables.get('lines', ['log', 1])).toBeUndefined()
      expect(await tables.get('things', ['fresh'])).toBeDefined()
      expect(await tables.get('things', ['always'])).toBeDefined()
      expect((await tables.lookup('things', 'by_colour', { partition: 'red', limit: 1 })).entries).toEqual([])
    })

    test('a row whose ttl was taken away is not purged', async () => {
      await put('things', { thing_id: 'a', ttl: 100 })
      const present = { test: 'present' } as const
      await tables.commit([
        { actions: [{ kind: 'update', table: 'things', key: ['a'], remove: ['ttl'], if: present }] },
      ])
      expect(await tables.purge(1_000, 10)).toBe(0)
      expect(await tables.get('things', ['a'])).toEqual({ thing_id: 'a' })
    })
  })
}
