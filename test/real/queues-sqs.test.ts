import { expect, test } from 'vitest'
import { systemClock } from '../../src/kernel/clock.ts'
import { provisionQueues } from '../../src/queues/sqs.ts'
import { queueContract } from '../contract/queue.ts'
import { connectionTo, openOnServer, serverTraits } from '../queues/sqs-server.ts'

const endpoint = process.env['MILLRACE_TEST_SQS'] ?? ''
if (!endpoint) throw new Error('MILLRACE_TEST_SQS must name a server that speaks the protocol of SQS')

queueContract('sqs, over a real server', (options) => openOnServer(endpoint, options), serverTraits)

test('queues that are already there are left as they are', async () => {
  const options = { ...connectionTo(endpoint), prefix: 'millrace-', queues: [`twice-${process.pid}`], encrypted: false }
  const first = await provisionQueues({ clock: systemClock }, options)
  expect(await provisionQueues({ clock: systemClock }, options)).toEqual(first)
})
