import type { Options } from '../config/options.ts'
import { jobsTable } from '../jobs/keys.ts'
import { eventsTable } from '../log/keys.ts'
import { nameOf, type Part } from '../queues/sqs/addresses.ts'
import { encryption, queueAttributes, queueParts } from '../queues/sqs/provision.ts'
import { type TableInput, tableInput } from '../tables/dynamodb/provision.ts'
import type { TableSchema } from '../tables/port.ts'

export type PlanOptions = Pick<Options, 'aws' | 'jobs'>

/** What the profile `aws` needs to be there, as the services are asked for it. */
export interface Plan {
  readonly region: string
  readonly tables: readonly TablePlan[]
  readonly queues: readonly QueuePlan[]
}

export interface TablePlan {
  /** Our own name of it. */
  readonly table: string
  readonly input: TableInput
  /** The attribute by which rows expire. */
  readonly ttl: string | undefined
}

export interface QueuePlan {
  /** Our own queue, and which part of it this is. */
  readonly queue: string
  readonly part: Part
  readonly name: string
  readonly attributes: Readonly<Record<string, string>>
}

export const provisionedTables: readonly TableSchema[] = [jobsTable, eventsTable]

/** The tables, and for each queue one of the service's per class of priority and one for dead letters. */
export const planOf = ({ aws, jobs }: PlanOptions): Plan => ({
  region: aws.region,
  tables: provisionedTables.map((schema) => ({
    table: schema.name,
    input: tableInput(schema, `${aws.tablePrefix}${schema.name}`),
    ttl: schema.ttl,
  })),
  queues: jobs.queues.flatMap((queue) =>
    queueParts.map((part) => ({
      queue,
      part,
      name: nameOf(aws.queuePrefix, queue, part),
      attributes: { ...queueAttributes, ...encryption },
    })),
  ),
})

/** The plan in words, for those who want to see it before anything is made. */
export const planText = ({ region, tables, queues }: Plan): string =>
  [`In ${region}:`, ...tables.flatMap(tableLines), ...queueLines(queues)].join('\n').concat('\n')

const tableLines = ({ input, ttl }: TablePlan): readonly string[] => [
  '',
  `table ${input.TableName}, paid per request`,
  `  key ${keyText(input, input.KeySchema)}`,
  ...(input.GlobalSecondaryIndexes ?? []).map(
    ({ IndexName, KeySchema }) => `  index ${IndexName} by ${keyText(input, KeySchema)}, keys only`,
  ),
  ...(ttl === undefined ? [] : [`  rows expire by ${ttl}`]),
]

const types: Readonly<Record<string, string>> = { S: 'text', N: 'number', B: 'bytes' }

const keyText = ({ AttributeDefinitions }: TableInput, keys: TableInput['KeySchema'] = []): string =>
  keys
    .map(({ AttributeName }) => {
      const defined = AttributeDefinitions?.find((one) => one.AttributeName === AttributeName)
      return `${AttributeName} (${types[defined?.AttributeType ?? ''] ?? 'unknown'})`
    })
    .join(', ')

/** All queues are alike: what they have in common is said once. */
const queueLines = (queues: readonly QueuePlan[]): readonly string[] => [
  '',
  ...queues.map(({ name }) => `queue ${name}`),
  ...Object.entries(queues[0]?.attributes ?? {}).map(([name, value]) => `  ${name} ${value}`),
]
