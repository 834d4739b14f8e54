import type { CreateTableCommandInput, DynamoDB, TableDescription } from '@aws-sdk/client-dynamodb'
import { assert } from '../../kernel/assert.ts'
import { sleep } from '../../kernel/clock.ts'
import { TableRefused, TableUnavailable } from '../faults.ts'
import type { TableSchema } from '../port.ts'
import { type Call, type CallDeps, createCall } from './call.ts'
import { connect, type DynamodbOptions, withDefaults } from './connect.ts'

const pollMs = 500

/** Creates what is missing of the tables: on demand, indexes of keys only, rows that expire. Doing it twice changes nothing. */
export const provisionTables = async (deps: CallDeps, options: DynamodbOptions): Promise<void> => {
  const settings = withDefaults(options)
  const client = await connect(settings)
  const until = deps.clock.monotonic() + settings.deadlineMs
  const provision = createProvision(client, createCall(deps, settings), until)
  try {
    for (const schema of settings.schemas) {
      const input = tableInput(schema, `${settings.tablePrefix}${schema.name}`)
      await provision.create(input)
      while (!(await provision.isActive(input))) {
        const isLate = deps.clock.monotonic() + pollMs >= until
        if (isLate) throw new TableUnavailable(`${input.TableName} is not ready yet`, 'unknown')
        await sleep(deps.clock, pollMs)
      }
      if (schema.ttl) await provision.expire(input.TableName, schema.ttl)
    }
  } finally {
    client.destroy()
  }
}

const createProvision = (client: DynamoDB, call: Call, until: number) => {
  const ask = <Output>(operation: string, send: (signal: AbortSignal) => Promise<Output>): Promise<Output> =>
    call({ operation, twice: 'safe', until }, async (signal) => ({ output: await send(signal), units: 0 }))

  return {
    create: (input: TableInput) =>
      ask('CreateTable', (abortSignal) =>
        client.createTable(input, { abortSignal }).catch(unless('ResourceInUseException')),
      ),
    isActive: async (input: TableInput): Promise<boolean> => {
      const { TableName } = input
      const { Table } = await ask('DescribeTable', (abortSignal) =>
        client.describeTable({ TableName }, { abortSignal }),
      )
      assert(Table, 'a table without a description')
      if (shapeOf(Table) !== shapeOf(input)) throw new TableRefused(`${TableName} exists with other keys or indexes`)
      const indexes = Table.GlobalSecondaryIndexes ?? []
      return Table.TableStatus === 'ACTIVE' && indexes.every(({ IndexStatus }) => IndexStatus === 'ACTIVE')
    },
    expire: async (TableName: string, AttributeName: string): Promise<void> => {
      const { TimeToLiveDescription: now } = await ask('DescribeTimeToLive', (abortSignal) =>
        client.describeTimeToLive({ TableName }, { abortSignal }),
      )
      if (now?.AttributeName === AttributeName) return
      const TimeToLiveSpecification = { AttributeName, Enabled: true }
      await ask('UpdateTimeToLive', (abortSignal) =>
        client.updateTimeToLive({ TableName, TimeToLiveSpecification }, { abortSignal }),
      )
    },
  }
}

/** Lets one kind of failure pass as no answer: what was asked for is so already. */
export const unless = (name: string) => (error: unknown) => {
  if ((error as Error).name === name) return undefined
  throw error
}

export type TableInput = CreateTableCommandInput & { readonly TableName: string }

/** A table as the service is asked for it. */
export const tableInput = (schema: TableSchema, TableName: string): TableInput => {
  const indexes = Object.entries(schema.indexes)
  const keys = [schema, ...Object.values(schema.indexes)]
  const types = new Map<string, 'S' | 'N'>()
  for (const { partition, sort } of keys) {
    types.set(partition, 'S')
    if (sort) types.set(sort.attribute, sort.type === 'number' ? 'N' : 'S')
  }
  return {
    TableName,
    BillingMode: 'PAY_PER_REQUEST',
    AttributeDefinitions: [...types].map(([AttributeName, AttributeType]) => ({ AttributeName, AttributeType })),
    KeySchema: keySchema(schema),
    ...(indexes.length === 0
      ? {}
      : {
          GlobalSecondaryIndexes: indexes.map(([IndexName, key]) => ({
            IndexName,
            KeySchema: keySchema(key),
            Projection: { ProjectionType: 'KEYS_ONLY' as const },
          })),
        }),
  }
}

const keySchema = ({ partition, sort }: Pick<TableSchema, 'partition' | 'sort'>) => [
  { AttributeName: partition, KeyType: 'HASH' as const },
  ...(sort ? [{ AttributeName: sort.attribute, KeyType: 'RANGE' as const }] : []),
]

/** Keys and indexes in one text, for comparing what there is with what there should be. */
export const shapeOf = ({ KeySchema, GlobalSecondaryIndexes = [] }: TableInput | TableDescription): string => {
  const keysOf = (schema: TableDescription['KeySchema'] = []) =>
    schema.map(({ AttributeName, KeyType }) => `${KeyType} ${AttributeName}`).join(' ')
  const indexes = GlobalSecondaryIndexes.map((index) => `${index.IndexName}: ${keysOf(index.KeySchema)}`)
  return [keysOf(KeySchema), ...indexes.toSorted()].join('; ')
}
