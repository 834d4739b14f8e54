import type { Clock } from '../kernel/clock.ts'
import type { Random } from '../kernel/random.ts'
import type { RetryPolicy } from '../kernel/retry.ts'
import { provisionQueues } from '../queues/sqs.ts'
import { provisionTables } from '../tables/dynamodb.ts'
import { type PlanOptions, provisionedTables } from './plan.ts'

export interface ApplyDeps {
  readonly clock: Clock
  readonly random: Random
}

const retry: RetryPolicy = { attemptsMax: 10, baseMs: 100, capMs: 5_000 }
/** A table takes up to a minute or two until it can be used. */
const tablesMs = 5 * 60_000

/**
 * Makes what is missing of the plan, and waits until it can be used. Doing it twice changes nothing; what is there with other
 * keys is refused and left alone.
 */
export const applyPlan = async (deps: ApplyDeps, { aws, jobs }: PlanOptions): Promise<void> => {
  const { region, endpoint, credentials, tablePrefix, queuePrefix } = aws
  const common = { region, ...(credentials ? { credentials } : {}) }
  await provisionTables(deps, {
    ...common,
    ...(endpoint.dynamodb ? { endpoint: endpoint.dynamodb } : {}),
    schemas: provisionedTables,
    tablePrefix,
    deadlineMs: tablesMs,
    callMs: aws.deadlineMs,
    retry,
  })
  await provisionQueues(deps, {
    ...common,
    ...(endpoint.sqs ? { endpoint: endpoint.sqs } : {}),
    prefix: queuePrefix,
    queues: jobs.queues,
  })
}
