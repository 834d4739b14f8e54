import { systemClock } from '../../src/kernel/clock.ts'
import { systemRandom } from '../../src/kernel/random.ts'
import { provisionQueues } from '../../src/queues/sqs.ts'
import { schemas } from '../../src/runtime.ts'
import { provisionTables } from '../../src/tables/dynamodb.ts'
import { storeContract } from '../contract/store.ts'

const address = (variable: string): string => {
  const value = process.env[variable]
  if (!value) throw new Error(`${variable} is not set: run these tests with npm run test:real`)
  return value
}

storeContract('DynamoDB Local and ElasticMQ, two processes', async () => {
  const endpoint = { dynamodb: address('MILLRACE_TEST_DYNAMODB'), sqs: address('MILLRACE_TEST_SQS') }
  const run = Buffer.from(systemRandom.bytes(6)).toString('hex')
  const names = { tablePrefix: `story_${run}_`, queuePrefix: `story-${run}-` }
  const common = { region: 'us-east-1', credentials: { accessKeyId: 'test', secretAccessKey: 'test' } }
  await provisionTables(
    { clock: systemClock, random: systemRandom },
    {
      ...common,
      endpoint: endpoint.dynamodb,
      schemas,
      tablePrefix: names.tablePrefix,
      deadlineMs: 30_000,
      retry: { attemptsMax: 10, baseMs: 50, capMs: 1_000 },
    },
  )
  await provisionQueues({ clock: systemClock }, {
    ...common,
    endpoint: endpoint.sqs,
    prefix: names.queuePrefix,
    queues: ['default', 'other', 'slow'],
  } as never)
  return { options: { profile: 'aws', aws: { ...common, ...names, endpoint } }, processes: 2, end: async () => {} }
})
