import { SendMessageCommand } from '@aws-sdk/client-sqs'
import { systemClock } from '../../src/kernel/clock.ts'
import { systemRandom } from '../../src/kernel/random.ts'
import { openClient } from '../../src/queues/sqs/service.ts'
import { openSqs, provisionQueues } from '../../src/queues/sqs.ts'
import type { QueueFixture, QueueTraits } from '../contract/queue.ts'

/** Servers have clocks of their own and count in seconds. */
export const serverTraits: QueueTraits = { clock: 'real', order: 'best effort', stepMs: 1_000, patienceMs: 20_000 }

export const connectionTo = (endpoint: string) => ({
  region: 'eu-west-1',
  endpoint,
  credentials: { accessKeyId: 'test', secretAccessKey: 'test' },
})

let names = 0

/** A queue of its own on a server that speaks the protocol. */
export const openOnServer = async (endpoint: string, options: { holdMs: number }): Promise<QueueFixture> => {
  names += 1
  const name = `mail-${process.pid}-${names}`
  const connection = connectionTo(endpoint)
  const urls = await provisionQueues(
    { clock: systemClock },
    { ...connection, prefix: 'millrace-', queues: [name], encrypted: false },
  )
  const queue = await openSqs(
    { clock: systemClock, random: systemRandom },
    { ...connection, prefix: 'millrace-', holdMs: options.holdMs },
  )
  const client = await openClient(connection, 1)
  return {
    queue,
    name,
    now: systemClock.now,
    elapse: async () => {},
    inject: async (body) => {
      await client.send(new SendMessageCommand({ QueueUrl: urls[name]?.normal, MessageBody: body }))
    },
    end: async () => {
      client.destroy()
      await queue.close()
    },
  }
}
