import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { systemClock } from '../../src/kernel/clock.ts'
import { systemRandom } from '../../src/kernel/random.ts'
import { type DynamodbOptions, openDynamodb, provisionTables } from '../../src/tables/dynamodb.ts'
import { contractSchemas, tablesContract } from '../contract/tables.ts'
import { startDynalite } from './dynalite-front.ts'

const deps = { clock: systemClock, random: systemRandom }
let dynalite: Awaited<ReturnType<typeof startDynalite>>
let options: DynamodbOptions

beforeAll(async () => {
  dynalite = await startDynalite()
  options = {
    schemas: contractSchemas,
    region: 'local',
    endpoint: dynalite.endpoint,
    credentials: { accessKeyId: 'any', secretAccessKey: 'any' },
    deadlineMs: 30_000,
    retry: { attemptsMax: 5, baseMs: 20, capMs: 200 },
  }
  await provisionTables(deps, options)
})
afterAll(() => dynalite.close())

tablesContract('dynamodb (dynalite)', async () => {
  const tables = await openDynamodb(deps, options)
  const lacks = { transactions: 'dynalite has none; npm run test:real tries them' }
  return { tables, end: () => tables.close(), prefix: `${randomUUID()}-`, lacks }
})

test('tables are provisioned once: a second time changes nothing', async () => {
  await provisionTables(deps, options)
})

test('a table that exists with other keys is not taken for ours', async () => {
  const schemas = contractSchemas.map((schema) => ({ ...schema, partition: 'other' }))
  await expect(provisionTables(deps, { ...options, schemas })).rejects.toMatchObject({ code: 'TABLE_REFUSED' })
})
