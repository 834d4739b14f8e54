import type { Options } from '../config/options.ts'
import type { RetryPolicy } from '../kernel/retry.ts'
import { openSqs, type SqsEvent } from '../queues/sqs.ts'
import { type DynamodbCall, openDynamodb } from '../tables/dynamodb.ts'
import { createPersistence } from '../write-behind/persist.ts'
import { freshPrefix, type Profile, type ProfileDeps } from './profile.ts'

const retry: RetryPolicy = { attemptsMax: 10, baseMs: 50, capMs: 2_000 }

/** DynamoDB for tables and SQS for queues, for as many processes as you like. Expired rows are deleted by the service. */
export const openAws = async (deps: ProfileDeps, options: Options): Promise<Profile> => {
  const { region, endpoint, credentials, tablePrefix, queuePrefix, deadlineMs } = options.aws
  const common = { region, ...(credentials ? { credentials } : {}) }
  const called = ({ operation, outcome, tookMs, units }: DynamodbCall) =>
    deps.emit({ name: 'storage.called', operation, outcome, tookMs, units })
  const troubled = (event: SqsEvent) => deps.emit({ name: 'queue.troubled', ...event })
  const service = await openDynamodb(
    { ...deps, emit: called },
    {
      ...common,
      ...(endpoint.dynamodb ? { endpoint: endpoint.dynamodb } : {}),
      schemas: deps.schemas,
      tablePrefix,
      deadlineMs,
      retry,
    },
  )
  const tables = createPersistence(deps, service, deps.schemas, options.writeBehind)
  const queue = await openSqs(
    { ...deps, emit: troubled },
    {
      ...common,
      ...(endpoint.sqs ? { endpoint: endpoint.sqs } : {}),
      prefix: queuePrefix,
    },
  )
  return {
    tables,
    queue,
    watchedFloorMs: 100,
    workerPrefix: freshPrefix(deps.random),
    close: async () => {
      await queue.close()
      await tables.close()
    },
  }
}
