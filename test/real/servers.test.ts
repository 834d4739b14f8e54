import { once } from 'node:events'
import { connect } from 'node:net'
import { networkInterfaces } from 'node:os'
import { describe, expect, test } from 'vitest'

const dynamodb = addressOf('MILLRACE_TEST_DYNAMODB')
const sqs = addressOf('MILLRACE_TEST_SQS')

test('DynamoDB Local keeps what it was given', async () => {
  const table = {
    TableName: 'servers-test',
    AttributeDefinitions: [{ AttributeName: 'id', AttributeType: 'S' }],
    KeySchema: [{ AttributeName: 'id', KeyType: 'HASH' }],
    BillingMode: 'PAY_PER_REQUEST',
  }
  const item = { id: { S: 'one' }, value: { N: '1' } }
  await call(dynamodb, 'DynamoDB_20120810.CreateTable', table)
  await call(dynamodb, 'DynamoDB_20120810.PutItem', { TableName: 'servers-test', Item: item })
  const read = await call(dynamodb, 'DynamoDB_20120810.GetItem', { TableName: 'servers-test', Key: { id: item.id } })
  await call(dynamodb, 'DynamoDB_20120810.DeleteTable', { TableName: 'servers-test' })
  expect(read).toEqual({ Item: item })
})

test('ElasticMQ hands out what it was sent', async () => {
  const { QueueUrl } = await call(sqs, 'AmazonSQS.CreateQueue', { QueueName: 'servers-test' })
  await call(sqs, 'AmazonSQS.SendMessage', { QueueUrl, MessageBody: 'hello' })
  const received = await call(sqs, 'AmazonSQS.ReceiveMessage', { QueueUrl, WaitTimeSeconds: 1 })
  await call(sqs, 'AmazonSQS.DeleteQueue', { QueueUrl })
  expect(received).toMatchObject({ Messages: [{ Body: 'hello' }] })
})

describe.each([
  ['DynamoDB Local', dynamodb],
  ['ElasticMQ', sqs],
])('%s', (_, address) => {
  test('listens on 127.0.0.1 and on no other address of this machine', async () => {
    // A server that listens everywhere answers on all of 127.0.0.0/8, so this holds on a machine without a network too.
    const others = ['127.0.0.2', '::1', ...outwardAddresses()]
    const port = Number(new URL(address).port)
    expect(await isOpen('127.0.0.1', port)).toBe(true)
    const open = await Promise.all(others.map((host) => isOpen(host, port)))
    expect(others.filter((_host, at) => open[at])).toEqual([])
  })
})

function addressOf(variable: string): string {
  const address = process.env[variable]
  if (address === undefined) throw new Error(`${variable} is not set: run these tests with npm run test:real`)
  return address
}

const call = async (address: string, target: string, body: object): Promise<Record<string, unknown>> => {
  const response = await fetch(address, {
    method: 'POST',
    headers: {
      'content-type': 'application/x-amz-json-1.0',
      'x-amz-target': target,
      authorization: 'AWS4-HMAC-SHA256 Credential=any/20260101/local/any/aws4_request, Signature=any',
    },
    body: JSON.stringify(body),
  })
  const text = await response.text()
  expect(response.status, text).toBe(200)
  return text === '' ? {} : JSON.parse(text)
}

const outwardAddresses = (): readonly string[] =>
  Object.values(networkInterfaces())
    .flatMap((addresses) => addresses ?? [])
    .filter(({ internal, scopeid }) => !internal && !scopeid)
    .map(({ address }) => address)

const isOpen = async (host: string, port: number): Promise<boolean> => {
  const socket = connect({ host, port })
  // A packet that a firewall drops is never answered: five seconds of silence mean closed.
  socket.setTimeout(5_000, () => socket.destroy(new Error('silent')))
  try {
    await once(socket, 'connect')
    return true
  } catch {
    return false
  } finally {
    socket.destroy()
  }
}
