import { startFauxqs } from 'fauxqs'
import { afterAll, beforeAll } from 'vitest'
import { queueContract } from '../contract/queue.ts'
import { openOnServer, serverTraits } from './sqs-server.ts'

let server: Awaited<ReturnType<typeof startFauxqs>>
beforeAll(async () => {
  server = await startFauxqs({ port: 0, logger: false })
})
afterAll(() => server.stop())

queueContract(
  'sqs, over a server in this process',
  (options) => openOnServer(`http://127.0.0.1:${server.port}`, options),
  serverTraits,
)
