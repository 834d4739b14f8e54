import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface DoubleCall {
  readonly operation: string
  // biome-ignore lint/suspicious/noExplicitAny: the body of any call of the protocol, looked into by tests.
  readonly input: any
  readonly bytes: number
}

/** What the double does with a call. `hang`: never answers. `cut`: hangs up. `half`: begins an answer, then hangs up. */
export type Reply = { readonly status: number; readonly body: unknown } | 'hang' | 'cut' | 'half' | 'garbage'
export type Script = readonly (Reply | ((call: DoubleCall) => Reply))[]

export interface Double {
  readonly endpoint: string
  readonly calls: readonly DoubleCall[]
  /** The most calls that were under way at once. */
  readonly busiest: number
  /** The next calls are answered by these, the later ones with an empty success. */
  script(...replies: Script): void
  /** Resolves when so many calls have come in all. */
  received(count: number): Promise<void>
  /** Answers what hangs with an empty success. */
  release(): void
  close(): Promise<void>
}

export const ok = (body: object = {}) => ({ status: 200, body }) satisfies Reply

/** A failure as the service spells it. */
export const failure = (name: string, more: object = {}, status = 400): Reply => ({
  status,
  body: { __type: `com.amazonaws.dynamodb.v20120810#${name}`, message: `a ${name}`, ...more },
})

/** A cancelled transaction, a reason per action. */
export const cancelled = (...reasons: readonly { readonly Code: string; readonly Item?: object }[]): Reply =>
  failure('TransactionCanceledException', { CancellationReasons: reasons })

export const times = (count: number, reply: Reply): Script => Array.from({ length: count }, () => reply)

/** The service's protocol with scripted answers. It stores nothing. */
export const startDouble = async (): Promise<Double> => {
  const calls: DoubleCall[] = []
  const replies: Script[number][] = []
  const hanging = new Set<ServerResponse>()
  const waiting: { readonly count: number; readonly resolve: () => void }[] = []
  let underWay = 0
  let busiest = 0

  const server = createServer(async (request, response) => {
    underWay += 1
    busiest = Math.max(busiest, underWay)
    response.once('close', () => {
      underWay -= 1
    })
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk)
    const body = Buffer.concat(chunks)
    const operation = String(request.headers['x-amz-target']).split('.')[1] ?? ''
    const call = { operation, input: JSON.parse(body.toString()), bytes: body.length }
    calls.push(call)
    const next = replies.shift() ?? ok()
    const reply = typeof next === 'function' ? next(call) : next
    if (reply === 'hang') hanging.add(response)
    else send(response, reply)
    for (const { count, resolve } of waiting) if (calls.length >= count) resolve()
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')

  return {
    endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    calls,
    get busiest() {
      return busiest
    },
    script: (...more) => void replies.push(...more),
    received: (count) =>
      new Promise((resolve) => {
        if (calls.length >= count) resolve()
        else waiting.push({ count, resolve })
      }),
    release: () => {
      for (const response of hanging) send(response, ok())
      hanging.clear()
    },
    close: async () => {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}

const send = (response: ServerResponse, reply: Exclude<Reply, 'hang'>): void => {
  if (reply === 'cut') return void response.destroy()
  if (reply === 'garbage') return void response.writeHead(200).end('{"Item":')
  if (reply === 'half') {
    response.writeHead(200, { 'content-length': 100 })
    response.write('{"Item":', () => response.destroy())
    return
  }
  const text = JSON.stringify(reply.body)
  response.writeHead(reply.status, { 'content-type': 'application/x-amz-json-1.0' }).end(text)
}
