import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import dynalite from 'dynalite'

type Body = Record<string, unknown>
type Item = Record<string, unknown>

/**
 * Dynalite behind a door that adds what it lacks: the row of a refused condition, read a moment later, and the setting of
 * a time to live. It has no transactions.
 */
export const startDynalite = async (): Promise<{ readonly endpoint: string; readonly close: () => Promise<void> }> => {
  const store = dynalite({ createTableMs: 0 })
  const inner = await listen(store)
  /** The key attributes of each table, seen when it was created. */
  const keys = new Map<string, readonly string[]>()

  const ask = async (operation: string, body: Body) => {
    const response = await fetch(inner, { method: 'POST', headers: headersOf(operation), body: JSON.stringify(body) })
    return { status: response.status, body: (await response.json()) as Body }
  }
  const withRow = async (request: Body, refusal: Body): Promise<Body> => {
    const names = keys.get(String(request['TableName'])) ?? []
    const whole = (request['Key'] ?? request['Item']) as Item
    const Key = Object.fromEntries(names.map((name) => [name, whole[name]]))
    const { body } = await ask('GetItem', { TableName: request['TableName'], Key, ConsistentRead: true })
    return { ...refusal, ...body }
  }
  const answer = async (operation: string, request: Body) => {
    if (operation === 'UpdateTimeToLive') return { status: 200, body: {} }
    if (operation === 'CreateTable') {
      const schema = request['KeySchema'] as readonly { readonly AttributeName: string }[]
      keys.set(
        String(request['TableName']),
        schema.map(({ AttributeName }) => AttributeName),
      )
    }
    const reply = await ask(operation, request)
    const isRefusal = String(reply.body['__type']).endsWith('ConditionalCheckFailedException')
    return isRefusal ? { ...reply, body: await withRow(request, reply.body) } : reply
  }

  const front = createServer(async (request, response) => {
    const operation = String(request.headers['x-amz-target']).split('.')[1] ?? ''
    const { status, body } = await answer(operation, await read(request))
    response.writeHead(status, { 'content-type': 'application/x-amz-json-1.0' }).end(JSON.stringify(body))
  })
  const endpoint = await listen(front)
  return {
    endpoint,
    close: async () => {
      await shut(front)
      await shut(store)
    },
  }
}

const headersOf = (operation: string) => ({
  'content-type': 'application/x-amz-json-1.0',
  'x-amz-target': `DynamoDB_20120810.${operation}`,
  'x-amz-date': '20260101T000000Z',
  authorization:
    'AWS4-HMAC-SHA256 Credential=any/20260101/local/dynamodb/aws4_request, SignedHeaders=host, Signature=any',
})

const listen = async (server: Server): Promise<string> => {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

const shut = async (server: Server): Promise<void> => {
  const closed = once(server, 'close')
  server.close()
  server.closeAllConnections()
  await closed
}

const read = async (request: IncomingMessage): Promise<Body> => {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk)
  return JSON.parse(Buffer.concat(chunks).toString()) as Body
}
