import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { systemClock } from '../../src/kernel/clock.ts'
import { systemRandom } from '../../src/kernel/random.ts'
import { rowBytes } from '../../src/tables/dynamodb/row.ts'
import { type DynamodbOptions, openDynamodb, provisionTables } from '../../src/tables/dynamodb.ts'
import type { Action, Row, Tables } from '../../src/tables/port.ts'
import { contractSchemas, tablesContract } from '../contract/tables.ts'

const options: DynamodbOptions = {
  schemas: contractSchemas,
  tablePrefix: `millrace_${randomUUID().slice(0, 8)}_`,
  region: 'local',
  endpoint: addressOf('MILLRACE_TEST_DYNAMODB'),
  credentials: { accessKeyId: 'any', secretAccessKey: 'any' },
  deadlineMs: 30_000,
  retry: { attemptsMax: 10, baseMs: 20, capMs: 500 },
}
const deps = { clock: systemClock, random: systemRandom }

beforeAll(() => provisionTables(deps, options))

tablesContract('dynamodb (DynamoDB Local)', async () => {
  const tables = await openDynamodb(deps, options)
  return { tables, end: () => tables.close(), prefix: `${randomUUID()}-` }
})

describe('what the double cannot vouch for', () => {
  let tables: Tables
  beforeAll(async () => {
    tables = await openDynamodb(deps, options)
  })
  afterAll(() => tables.close())

  const fresh = () => randomUUID()
  const put = (row: Row): Action => ({ kind: 'put', table: 'things', row })
  const commit = async (...actions: Action[]) => (await tables.commit([{ actions }]))[0]
  const rowOf = (bytes: number, id = fresh()): Row => {
    const rest = 'thing_id'.length + id.length + 'payload'.length
    return { thing_id: id, payload: new Uint8Array(bytes - rest) }
  }

  test('provisioning twice changes nothing, and tables of another shape are refused', async () => {
    await provisionTables(deps, options)
    const other = contractSchemas.map((schema) => ({ ...schema, partition: 'other' }))
    await expect(provisionTables(deps, { ...options, schemas: other })).rejects.toMatchObject({ code: 'TABLE_REFUSED' })
  })

  test('E19 the service takes a row of exactly 400 KB, and an update that makes it a byte longer is a limit', async () => {
    const row = rowOf(400 * 1024)
    expect(await commit(put(row))).toMatchObject({ kind: 'done' })
    const key = [row['thing_id'] as string] as const
    const verdict = await commit({ kind: 'update', table: 'things', key, set: { x: '' } })
    expect(verdict).toMatchObject({ kind: 'failed', fault: { code: 'TABLE_LIMIT', outcome: 'none' } })
  })

  test('E19 the service counts numbers, texts and booleans as we do', async () => {
    const numbers = Object.fromEntries([0, 7, 12, 120, 123, -1.5, 1e21, 0.001, -123_456_789].map((n) => [`n${n}`, n]))
    const cells: Row = { thing_id: fresh(), ...numbers, zwölf: 'zwölf', yes: true, payload: '' }
    const row: Row = { ...cells, payload: 'x'.repeat(400 * 1024 - rowBytes(cells)) }
    expect(await commit(put(row))).toMatchObject({ kind: 'done' })
    const key = [row['thing_id'] as string] as const
    const longer = await commit({ kind: 'update', table: 'things', key, set: { x: '' } })
    expect(longer).toMatchObject({ kind: 'failed', fault: { code: 'TABLE_LIMIT' } })
  })

  test('E19 the service takes a transaction of a hundred actions and one of almost 4 MB', async () => {
    const actions = Array.from({ length: 100 }, () => put({ thing_id: fresh() }))
    expect(await commit(...actions)).toEqual({ kind: 'done' })
    const large = Array.from({ length: 10 }, () => put(rowOf(400 * 1024)))
    expect(await commit(...large)).toEqual({ kind: 'done' })
  })

  test('an update that changes nothing or only removes leaves the rest of the row alone', async () => {
    const id = fresh()
    const present = { test: 'present' } as const
    const update = (remove: string[]): Action => ({ kind: 'update', table: 'things', key: [id], remove, if: present })
    await commit(put({ thing_id: id, x: 1, y: '' }))
    expect(await commit(update([]))).toEqual({ kind: 'done', row: { thing_id: id, x: 1, y: '' } })
    expect(await commit(update([]), put({ thing_id: fresh() }))).toEqual({ kind: 'done' })
    expect(await commit(update(['x', 'never']))).toEqual({ kind: 'done', row: { thing_id: id, y: '' } })
  })

  test('the last word on an attribute that is set, added to and removed at once is the model’s', async () => {
    const id = fresh()
    const set = { n: 1, m: 1 }
    const verdict = await commit({
      kind: 'update',
      table: 'things',
      key: [id],
      set,
      add: { n: 2, k: 1 },
      remove: ['m', 'k', 'm'],
    })
    expect(verdict).toEqual({ kind: 'done', row: { thing_id: id, n: 3 } })
  })

  test('conditions without parts and comparisons without an order have an answer', async () => {
    const id = fresh()
    const attempt = (condition: Extract<Action, { if?: unknown }>['if']) =>
      commit({
        kind: 'put',
        table: 'things',
        row: { thing_id: id, yes: true },
        ...(condition ? { if: condition } : {}),
      })
    expect(await attempt({ test: 'all', of: [] })).toMatchObject({ kind: 'done' })
    expect(await attempt({ test: 'any', of: [] })).toMatchObject({ kind: 'refused' })
    expect(await attempt({ test: '<', attribute: 'yes', value: false })).toMatchObject({ kind: 'refused' })
    const nested = { test: 'all', of: [{ test: 'any', of: [{ test: 'any', of: [{ test: 'present' }] }] }] } as const
    expect(await attempt(nested)).toMatchObject({ kind: 'done' })
  })

  test('a row that spoils a batch fails alone', async () => {
    const [good, bad] = [fresh(), fresh()]
    const verdicts = await tables.commit([
      { actions: [put({ thing_id: good })] },
      { actions: [put({ thing_id: bad, colour: '', size: 1 })] },
    ])
    expect(verdicts).toMatchObject([{ kind: 'done' }, { kind: 'failed', fault: { code: 'TABLE_REFUSED' } }])
    expect(await tables.get('things', [good])).toEqual({ thing_id: good })
  })

  test('a table that was never provisioned refuses for good', async () => {
    const stranger = await openDynamodb(deps, { ...options, tablePrefix: 'nobody_' })
    await expect(stranger.get('things', ['a'])).rejects.toMatchObject({ code: 'TABLE_REFUSED', retry: 'never' })
    await stranger.close()
  })
})

function addressOf(variable: string): string {
  const address = process.env[variable]
  if (address === undefined) throw new Error(`${variable} is not set: run these tests with npm run test:real`)
  return address
}
