import type { Part } from '../queues/sqs/addresses.ts'
import { TemplateLimit } from './faults.ts'
import type { Plan, QueuePlan, TablePlan } from './plan.ts'

export interface Template {
  readonly AWSTemplateFormatVersion: '2010-09-09'
  readonly Description: string
  readonly Resources: Readonly<Record<string, Resource>>
}

export interface Resource {
  readonly Type: 'AWS::DynamoDB::Table' | 'AWS::SQS::Queue'
  /** Jobs outlive the stack that made their tables. */
  readonly DeletionPolicy: 'Retain'
  readonly UpdateReplacePolicy: 'Retain'
  readonly Properties: Readonly<Record<string, unknown>>
}

/** The service's own limit. */
const resourcesMax = 500

/** The plan as a CloudFormation template, for those who let nobody else make resources. */
export const templateOf = ({ tables, queues }: Plan): Template => {
  const count = tables.length + queues.length
  if (count > resourcesMax) throw new TemplateLimit(count, resourcesMax)
  return {
    AWSTemplateFormatVersion: '2010-09-09',
    Description: 'Tables and queues of Millrace.',
    Resources: Object.fromEntries([
      ...tables.map((table) => [`Table${plain(table.table)}`, tableResource(table)]),
      ...queues.map((queue) => [`Queue${plain(queue.queue)}${suffixes[queue.part]}`, queueResource(queue)]),
    ]),
  }
}

const kept = { DeletionPolicy: 'Retain', UpdateReplacePolicy: 'Retain' } as const

const tableResource = ({ input, ttl }: TablePlan): Resource => ({
  Type: 'AWS::DynamoDB::Table',
  ...kept,
  Properties: {
    ...input,
    ...(ttl === undefined ? {} : { TimeToLiveSpecification: { AttributeName: ttl, Enabled: true } }),
  },
})

const queueResource = ({ name, attributes }: QueuePlan): Resource => ({
  Type: 'AWS::SQS::Queue',
  ...kept,
  Properties: {
    QueueName: name,
    ...Object.fromEntries(Object.entries(attributes).map(([key, value]) => [key, asValue(value)])),
  },
})

/** The service's calls take every attribute as text; its templates want numbers and truth values. */
const asValue = (text: string): unknown => JSON.parse(text)

/** Names in a template have letters and digits only. Ours have no capitals, so that no two of them become one. */
const plain = (name: string): string => name.replaceAll('-', 'D').replaceAll('_', 'U')
const suffixes: Readonly<Record<Part, string>> = { high: 'High', normal: 'Normal', low: 'Low', dead: 'Dead' }
