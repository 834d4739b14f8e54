import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { DynamoDB } from '@aws-sdk/client-dynamodb'
import { GetQueueAttributesCommand, ListQueuesCommand, SetQueueAttributesCommand } from '@aws-sdk/client-sqs'
import { startFauxqs } from 'fauxqs'
import { afterEach, describe, expect, test } from 'vitest'
import { loadOptions } from '../../src/config/load.ts'
import { systemClock } from '../../src/kernel/clock.ts'
import { systemRandom } from '../../src/kernel/random.ts'
import { templateOf } from '../../src/provision/cloudformation.ts'
import { planOf, planText } from '../../src/provision/plan.ts'
import { createProvisioning, type ProvisionStep } from '../../src/provision/provisioning.ts'
import { openClient } from '../../src/queues/sqs/service.ts'
import { connectionTo } from '../queues/sqs-server.ts'
import { startDynalite } from '../tables/dynalite-front.ts'
import { type DoubleCall, failure, ok, type Reply, startDouble } from '../tables/dynamodb-double.ts'

const deps = { clock: systemClock, random: systemRandom }
const ends: (() => unknown)[] = []
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end()
})

const optionsFor = (dynamodb: string, sqs: string, queues: readonly string[] = ['default', 'mail-out']) =>
  loadOptions({
    profile: 'aws',
    aws: {
      region: 'eu-west-1',
      endpoint: { dynamodb, sqs },
      credentials: { accessKeyId: 'test', secretAccessKey: 'test' },
      tablePrefix: 'prod_',
      queuePrefix: 'prod-',
    },
    jobs: { queues },
  })
const plain = optionsFor('http://127.0.0.1:1', 'http://127.0.0.1:1')

/** Tables as the service would describe them once it was asked for them. */
const describing = () => {
  const asked = new Map<string, DoubleCall['input']>()
  return ({ operation, input }: DoubleCall) => {
    if (operation === 'CreateTable') asked.set(input.TableName, input)
    if (operation !== 'DescribeTable') return ok()
    const table = asked.get(input.TableName)
    if (table === undefined) return failure('ResourceNotFoundException')
    const indexes = (table.GlobalSecondaryIndexes ?? []).map((one: object) => ({ ...one, IndexStatus: 'ACTIVE' }))
    return ok({ Table: { ...table, TableStatus: 'ACTIVE', GlobalSecondaryIndexes: indexes } })
  }
}

/** A service of queues that takes what it is asked for and remembers it. */
const startQueues = async () => {
  const created: { readonly QueueName: string; readonly Attributes: Record<string, string> }[] = []
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const input = JSON.parse(Buffer.concat(chunks).toString())
    const isCreate = request.headers['x-amz-target'] === 'AmazonSQS.CreateQueue'
    if (isCreate) created.push(input)
    const body = isCreate
      ? { QueueUrl: `http://q/1/${input.QueueName}` }
      : { __type: 'com.amazonaws.sqs#QueueDoesNotExist', message: 'no such queue' }
    response.writeHead(isCreate ? 200 : 400, { 'content-type': 'application/x-amz-json-1.0' })
    response.end(JSON.stringify(body))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  ends.push(() => server.close())
  return { endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, created }
}

describe('the plan', () => {
  test('R1.3 R1.5 R1.6 has the tables, and a queue per class and one for dead letters', () => {
    const { tables, queues } = planOf(plain)
    expect(tables.map(({ input, ttl }) => [input.TableName, input.BillingMode, ttl])).toEqual([
      ['prod_jobs', 'PAY_PER_REQUEST', 'ttl'],
      ['prod_job_events', 'PAY_PER_REQUEST', 'ttl'],
    ])
    expect(tables[0]?.input.GlobalSecondaryIndexes?.map(({ Projection }) => Projection?.ProjectionType)).toEqual([
      'KEYS_ONLY',
      'KEYS_ONLY',
    ])
    expect(queues.map(({ name }) => name)).toEqual([
      'prod-default-high',
      'prod-default',
      'prod-default-low',
      'prod-default-dead',
      'prod-mail-out-high',
      'prod-mail-out',
      'prod-mail-out-low',
      'prod-mail-out-dead',
    ])
    expect(queues[0]?.attributes).toEqual({
      ReceiveMessageWaitTimeSeconds: '20',
      MessageRetentionPeriod: '1209600',
      VisibilityTimeout: '300',
      SqsManagedSseEnabled: 'true',
    })
  })

  test('is told in words', () => {
    const text = planText(planOf(plain))
    expect(text).toBe(`In eu-west-1:

table prod_jobs, paid per request
  key job_id (text)
  index listing by list_shard (text), list_key (text), keys only
  index due by due_shard (text), due_at (number), keys only
  rows expire by ttl

table prod_job_events, paid per request
  key log_id (text), sequence (number)
  rows expire by ttl

queue prod-default-high
queue prod-default
queue prod-default-low
queue prod-default-dead
queue prod-mail-out-high
queue prod-mail-out
queue prod-mail-out-low
queue prod-mail-out-dead
  ReceiveMessageWaitTimeSeconds 20
  MessageRetentionPeriod 1209600
  VisibilityTimeout 300
  SqsManagedSseEnabled true
`)
  })
})

describe('R1.27 provisioning', () => {
  test('the template has what the services are asked for, and nothing else', async () => {
    const double = await startDouble()
    ends.push(double.close)
    const describe = describing()
    double.script(...Array.from({ length: 20 }, () => describe))
    const queues = await startQueues()
    const options = optionsFor(double.endpoint, queues.endpoint)
    await createProvisioning(deps, options).apply()

    const inputs = (operation: string) =>
      double.calls.filter((call) => call.operation === operation).map(({ input }) => input)
    const expiry = new Map(inputs('UpdateTimeToLive').map((one) => [one.TableName, one.TimeToLiveSpecification]))
    const resources = Object.values(templateOf(planOf(options)).Resources)
    const propertiesOf = (type: string) =>
      resources.filter(({ Type }) => Type === type).map(({ Properties }) => Properties)
    expect(propertiesOf('AWS::DynamoDB::Table')).toEqual(
      inputs('CreateTable').map((input) => ({ ...input, TimeToLiveSpecification: expiry.get(input.TableName) })),
    )
    const byName = (one: { readonly QueueName?: unknown }, other: { readonly QueueName?: unknown }) =>
      String(one.QueueName).localeCompare(String(other.QueueName))
    const texts = propertiesOf('AWS::SQS::Queue').map(({ QueueName, ...rest }) => ({
      QueueName,
      Attributes: Object.fromEntries(Object.entries(rest).map(([key, value]) => [key, String(value)])),
    }))
    expect(texts.sort(byName)).toEqual(queues.created.sort(byName))
    expect(queues.created).toHaveLength(8)
    expect(resources.every((one) => one.DeletionPolicy === 'Retain')).toBe(true)
  })

  test('the template is valid in form: numbers are numbers, names are letters and digits, and no two are one', () => {
    const { Resources } = templateOf(planOf(optionsFor('http://x', 'http://x', ['a-b', 'a_b', 'ab', 'a-ead'])))
    const names = Object.keys(Resources)
    expect(names.every((name) => /^[A-Za-z0-9]{1,255}$/.test(name))).toBe(true)
    expect(names).toHaveLength(2 + 4 * 4)
    expect(Resources['QueueaDbHigh']?.Properties).toEqual({
      QueueName: 'prod-a-b-high',
      ReceiveMessageWaitTimeSeconds: 20,
      MessageRetentionPeriod: 1_209_600,
      VisibilityTimeout: 300,
      SqsManagedSseEnabled: true,
    })
  })

  test('more than a template can hold is refused', () => {
    const queues = Array.from({ length: 125 }, (_, n) => `q${n}`)
    const plan = planOf(optionsFor('http://x', 'http://x', queues))
    expect(() => templateOf(plan)).toThrow(expect.objectContaining({ code: 'TEMPLATE_LIMIT', limit: 500 }))
  })

  test('applying it twice changes nothing, and a look tells what differs', async () => {
    const dynalite = await startDynalite()
    ends.push(dynalite.close)
    const fauxqs = await startFauxqs({ port: 0, logger: false })
    ends.push(() => fauxqs.stop())
    const sqs = `http://127.0.0.1:${fauxqs.port}`
    const options = optionsFor(dynalite.endpoint, sqs)
    const database = new DynamoDB({ ...connectionTo(dynalite.endpoint) })
    ends.push(() => database.destroy())
    const messages = await openClient(connectionTo(sqs), 1)
    ends.push(() => messages.destroy())
    const state = async () => {
      const { TableNames = [] } = await database.listTables()
      const tables = await Promise.all(TableNames.map((TableName) => database.describeTable({ TableName })))
      const { QueueUrls = [] } = await messages.send(new ListQueuesCommand({}))
      const queues = await Promise.all(
        QueueUrls.toSorted().map((QueueUrl) =>
          messages.send(new GetQueueAttributesCommand({ QueueUrl, AttributeNames: ['All'] })),
        ),
      )
      return {
        tables: tables.map(({ Table }) => Table),
        urls: QueueUrls.toSorted(),
        queues: queues.map(({ Attributes }) => Attributes),
      }
    }
    const provisioning = createProvisioning(deps, options)
    const tell = async () => {
      const steps: ProvisionStep[] = []
      await provisioning.apply((step) => steps.push(step))
      return steps.map(({ resource, action }) => `${action} ${resource}`)
    }
    const planned = await provisioning.plan()
    expect((await state()).urls).toEqual([])
    const told = await tell()
    expect(told).toEqual(planned.map(({ resource, action }) => `${action} ${resource}`))
    expect(told).toHaveLength(10)
    expect(told.every((step) => step.startsWith('create'))).toBe(true)
    const first = await state()
    expect(first.tables.map((table) => table?.TableName)).toEqual(['prod_job_events', 'prod_jobs'])
    expect(first.urls).toHaveLength(8)
    expect((await tell()).filter((step) => step.startsWith('keep queue'))).toHaveLength(8)
    expect(await state()).toEqual(first)
    const [changed] = first.urls
    await messages.send(new SetQueueAttributesCommand({ QueueUrl: changed, Attributes: { VisibilityTimeout: '1' } }))
    const different = (await provisioning.plan()).filter(({ action }) => action === 'change')
    // This stand-in forgets by what rows expire; the next test is about tables.
    expect(different.filter(({ resource }) => resource.startsWith('queue'))).toEqual([
      { resource: `queue ${changed?.split('/').at(-1)}`, action: 'change' },
    ])
  })

  test('the plan says of each table whether it is there as it should be, and refuses one with other keys', async () => {
    const [jobs, events] = planOf(plain).tables.map(({ input }) => input)
    const expiring = ok({ TimeToLiveDescription: { AttributeName: 'ttl', TimeToLiveStatus: 'ENABLED' } })
    const plan = async (...replies: Reply[]) => {
      const double = await startDouble()
      ends.push(double.close)
      double.script(...replies)
      const queues = await startQueues()
      const steps = await createProvisioning(deps, optionsFor(double.endpoint, queues.endpoint)).plan()
      expect(queues.created).toEqual([])
      expect(double.calls.every(({ operation }) => operation.startsWith('Describe'))).toBe(true)
      return steps.slice(0, 2)
    }
    expect(await plan(failure('ResourceNotFoundException'), ok({ Table: events }), expiring)).toEqual([
      { resource: 'table prod_jobs', action: 'create' },
      { resource: 'table prod_job_events', action: 'keep' },
    ])
    expect(await plan(ok({ Table: jobs }), ok(), ok({ Table: events }), expiring)).toEqual([
      { resource: 'table prod_jobs', action: 'change', detail: 'rows expire by ttl' },
      { resource: 'table prod_job_events', action: 'keep' },
    ])
    await expect(plan(ok({ Table: { ...events, TableName: 'prod_jobs' } }))).rejects.toMatchObject({
      code: 'TABLE_REFUSED',
    })
  })
})
