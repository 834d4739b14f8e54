import { randomBytes } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createPlace, type Place } from '../../stories/support/place.ts'

/** A place whose jobs live in DynamoDB Local and ElasticMQ, under names of its own. */
export interface AwsPlace extends Place {
  readonly endpoint: { readonly dynamodb: string; readonly sqs: string }
  readonly tablePrefix: string
  readonly queuePrefix: string
}

export const createAwsPlace = (whenOver?: (end: () => Promise<void>) => void): AwsPlace => {
  const place = createPlace(whenOver)
  const run = randomBytes(6).toString('hex')
  const endpoint = { dynamodb: address('MILLRACE_TEST_DYNAMODB'), sqs: address('MILLRACE_TEST_SQS') }
  const names = { tablePrefix: `story_${run}_`, queuePrefix: `story-${run}-` }
  const config = {
    profile: 'aws',
    aws: {
      region: 'us-east-1',
      credentials: { accessKeyId: 'test', secretAccessKey: 'test' },
      endpoint,
      ...names,
    },
    // Short leases, so that a dead worker is noticed within the test. A message can go to a poll that a dead process left behind,
    // so whether it was lost is looked at soon as well.
    jobs: { sweepIntervalMs: 200, outboxDelayMs: 1_000, execution: { leaseMs: 3_000, heartbeatMs: 1_000 } },
  }
  // What is JSON is YAML too, and whoever starts in this folder finds it.
  writeFileSync(join(place.folder, 'millrace.yaml'), JSON.stringify(config))
  return { ...place, endpoint, ...names }
}

const address = (variable: string): string => {
  const value = process.env[variable]
  if (!value) throw new Error(`${variable} is not set: run these tests with npm run test:real`)
  return value
}
