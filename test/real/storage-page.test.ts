// What docs/storage.md says, against what a stranger finds: the bare AWS SDK, the generated messages, and nothing else of ours.

import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { crc32, inflateRawSync } from 'node:zlib'
import { type AttributeValue, DynamoDBClient, QueryCommand, ScanCommand } from '@aws-sdk/client-dynamodb'
import { GetQueueUrlCommand, ReceiveMessageCommand, SQSClient } from '@aws-sdk/client-sqs'
import { fromBinary } from '@bufbuild/protobuf'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type JobEvent, JobEventSchema } from '../../api/gen/millrace/v1/event_pb.js'
import { startService } from '../stories/support/service.ts'
import { createAwsPlace } from './support/aws-place.ts'

type Item = Record<string, AttributeValue>

interface Documented {
  readonly type: string
  readonly isAlways: boolean
}

/** The tables of attributes by the heading above them. */
const page = readFileSync(join(import.meta.dirname, '..', '..', 'docs', 'storage.md'), 'utf8')
const kinds = new Map(
  page.split(/^### /m).flatMap((section) => {
    const [heading = ''] = section.split(':', 1)
    const rows = [...section.matchAll(/^\| `(\w+)` \| (S|N|B|BOOL) \| ([^|]+) \|/gm)]
    const attributes = rows.map(([, name = '', type = '', there = '']): [string, Documented] => [
      name,
      { type, isAlways: there === 'always' },
    ])
    return attributes.length === 0 ? [] : [[heading, new Map(attributes)] as const]
  }),
)

const kindOf = (id: string): string => {
  const [prefix = '', rest] = id.split('#', 2)
  return rest === undefined
    ? 'Job'
    : ({ signing: 'Signing key' }[prefix] ?? prefix.replace(/^./, (c) => c.toUpperCase()))
}

/** What of an item the page does not say, or says otherwise. */
const disagreements = (kind: string, item: Item): readonly string[] => {
  const documented = kinds.get(kind)
  if (documented === undefined) return [`${kind} is not on the page`]
  return [
    ...Object.entries(item).flatMap(([name, value]) => {
      const [type = ''] = Object.keys(value)
      const said = documented.get(name)?.type
      return said === type ? [] : [`${kind}.${name} is ${type}, and the page says ${said}`]
    }),
    ...[...documented].flatMap(([name, { isAlways }]) =>
      isAlways && item[name] === undefined ? [`${kind}.${name} is not there`] : [],
    ),
  ]
}

const place = createAwsPlace(afterAll)
const common = { region: 'us-east-1', credentials: { accessKeyId: 'test', secretAccessKey: 'test' } }
const dynamodb = new DynamoDBClient({ ...common, endpoint: place.endpoint.dynamodb })
const sqs = new SQSClient({ ...common, endpoint: place.endpoint.sqs })
afterAll(() => {
  dynamodb.destroy()
  sqs.destroy()
})
const table = (name: string) => `${place.tablePrefix}${name}`
const scan = async (name: string): Promise<readonly Item[]> =>
  (await dynamodb.send(new ScanCommand({ TableName: table(name), ConsistentRead: true }))).Items ?? []

const submit = async (...args: readonly string[]): Promise<string> =>
  (await place.run(['submit', ...args])).stdout.trim()
let printed: string
const ids: Record<string, string> = {}

beforeAll(async () => {
  await place.run(['provision'])
  // A job that waits: nobody works yet.
  const server = await startService(place, 'server')
  ids['waiting'] = await submit('--server', server.address, '--priority', 'high', '--', 'true')
  await place.run(['cancel', '--server', server.address, ids['waiting']])
  server.send('SIGTERM')
  await server.ended
  const long = "'x'.repeat(2_000)"
  const handlers = `export const telling = () => ${long}\nexport const breaking = () => { throw new Error(${long}) }\n`
  writeFileSync(join(place.folder, 'handlers.mjs'), handlers)
  await startService(place, 'up', ['--handlers', 'handlers.mjs'])
  const script = 'seq -f "line %.0f of the output" 1 120; echo oops >&2'
  printed = `${Array.from({ length: 120 }, (_, n) => `line ${n + 1} of the output`).join('\n')}\n`
  ids['printing'] = await submit('--request-id', 'once', '--timeout', '1m', '--', 'sh', '-c', script)
  ids['failing'] = await submit('--retries', '1', '--', 'sh', '-c', 'exit 3')
  ids['long'] = await submit('--env', `LONG=${'x'.repeat(2_000)}`, '--', 'true')
  ids['cancelled'] = await submit('--', 'sleep', '1000')
  const live = place.start(['monitor', ids['cancelled']])
  await live.stderr.until(/attempt 1 started/)
  await place.run(['cancel', ids['cancelled']])
  ids['telling'] = await submit('--handler', 'telling')
  ids['breaking'] = await submit('--handler', 'breaking')
  // Each is watched to its end.
  for (const id of Object.values(ids)) expect(await place.run(['monitor', id])).toMatchObject({ code: 0 })
}, 120_000)

test('every row of the jobs table is of a kind that the page names, with the attributes that it names', async () => {
  const rows = await scan('jobs')
  const found = rows.map((row) => [kindOf(row['job_id']?.S ?? ''), row] as const)
  expect(found.flatMap(([kind, row]) => disagreements(kind, row))).toEqual([])
  expect(new Set(found.map(([kind]) => kind))).toEqual(new Set([...kinds.keys()].filter((kind) => kind !== 'Item')))
  const row = (id: string | undefined) => rows.find(({ job_id }) => job_id?.S === id) ?? {}
  expect(row(ids['printing'])).toMatchObject({
    state: { S: 'COMPLETED' },
    attempt: { N: '1' },
    request_id: { S: 'once' },
    timeout_ms: { N: '60000' },
    result: { S: '{"exitCode":0}' },
  })
  expect(JSON.parse(row(ids['printing'])['params']?.S ?? '')).toMatchObject({ kind: 'command', cwd: place.folder })
  expect(row('request#default#once')).toMatchObject({ made: { S: ids['printing'] } })
  expect(row(ids['failing'])).toMatchObject({
    state: { S: 'FAILED' },
    failed_attempts: { N: '2' },
    attempt: { N: '2' },
  })
  expect(row(ids['cancelled'])).toMatchObject({ state: { S: 'CANCELLED' } })
  expect(row(ids['waiting'])).toMatchObject({ state: { S: 'CANCELLED' }, attempt: { N: '0' }, priority: { S: 'high' } })
  expect(row(ids['telling'])).toMatchObject({ state: { S: 'COMPLETED' }, result_outside: { BOOL: true } })
  expect(row(`result#${ids['telling']}#1`)).toMatchObject({ result: { S: JSON.stringify('x'.repeat(2_000)) } })
  expect(row(ids['breaking'])).toMatchObject({ state: { S: 'FAILED' }, error_outside: { BOOL: true } })
  expect(row(`error#${ids['breaking']}#1`)['error']?.S).toContain('x'.repeat(2_000))
  expect(row(ids['long'])['params']).toBeUndefined()
  expect(JSON.parse(row(`params#${ids['long']}`)['params']?.S ?? '')).toMatchObject({ argv: ['true'] })
})

test('the comparison can fail', () => {
  expect(disagreements('Signing key', { job_id: { N: '1' }, more: { S: '' } })).toEqual([
    'Signing key.job_id is N, and the page says S',
    'Signing key.more is S, and the page says undefined',
    'Signing key.secret is not there',
  ])
  expect(disagreements('Nothing', {})).toEqual(['Nothing is not on the page'])
})

const eventOf = (item: Item): JobEvent => {
  const payload = item['event_payload']?.B ?? new Uint8Array()
  expect(crc32(payload)).toBe(Number(item['crc']?.N))
  return fromBinary(JobEventSchema, item['encoding']?.N === '1' ? inflateRawSync(payload) : payload)
}

test('every item of the events table is as the page says, and a log can be put together from it', async () => {
  expect((await scan('job_events')).flatMap((item) => disagreements('Item', item))).toEqual([])
  const { Items = [] } = await dynamodb.send(
    new QueryCommand({
      TableName: table('job_events'),
      KeyConditionExpression: 'log_id = :log',
      ExpressionAttributeValues: { ':log': { S: `${ids['printing']}#1` } },
    }),
  )
  const ends = Items.map((item) => [Number(item['sequence']?.N), Number(item['end_sequence']?.N)] as const)
  expect(ends[0]?.[0]).toBe(1)
  expect(ends.slice(1).map(([first]) => first)).toEqual(ends.slice(0, -1).map(([, last]) => last + 1))
  const streams: Record<number, Buffer[]> = { 1: [], 2: [] }
  for (const { data } of Items.map(eventOf)) {
    if (data.case !== 'outputBatch') continue
    let [output, at] = [0, 0]
    for (let run = 0; run < data.value.runs.length; run += 3) {
      for (let left = data.value.runs[run] ?? 0; left > 0; left--) {
        const length = data.value.lengths[output++] ?? 0
        streams[data.value.runs[run + 1] ?? 0]?.push(Buffer.from(data.value.data.subarray(at, at + length)))
        at += length
      }
    }
  }
  expect(Buffer.concat(streams[1] ?? []).toString()).toBe(printed)
  expect(Buffer.concat(streams[2] ?? []).toString()).toBe('oops\n')
  const [first, last] = [Items[0], Items.at(-1)].map((item) => item && eventOf(item))
  expect(first?.data).toMatchObject({ case: 'processStart', value: { attempt: 1 } })
  expect(last?.data).toMatchObject({ case: 'processEnd', value: { exitCode: 0 } })
  expect(Items.some((item) => item['encoding']?.N === '1')).toBe(true)
})

test('a message is the hint that the page shows', async () => {
  // Nobody works here, so that nobody takes it.
  const quiet = createAwsPlace()
  await quiet.run(['provision'])
  const server = await startService(quiet, 'server')
  const job = (await quiet.run(['submit', '--server', server.address, '--priority', 'low', '--', 'true'])).stdout.trim()
  const { QueueUrl } = await sqs.send(new GetQueueUrlCommand({ QueueName: `${quiet.queuePrefix}default-low` }))
  const { Messages = [] } = await sqs.send(new ReceiveMessageCommand({ QueueUrl, WaitTimeSeconds: 5 }))
  expect(Messages.map(({ Body = '' }) => JSON.parse(Body))).toEqual([
    { job_id: job, queue: 'default', priority: 'low', attempt: 0, v: 1 },
  ])
})
