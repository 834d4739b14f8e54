import type { Clock } from '../kernel/clock.ts'
import type { Random } from '../kernel/random.ts'
import type { RetryPolicy } from '../kernel/retry.ts'
import { lookAtQueues } from '../queues/sqs/look.ts'
import { provisionQueues } from '../queues/sqs.ts'
import { lookAtTables } from '../tables/dynamodb/look.ts'
import { provisionTables } from '../tables/dynamodb.ts'
import { templateOf } from './cloudformation.ts'
import { type PlanOptions, planOf, planText, provisionedTables } from './plan.ts'

export interface ProvisionDeps {
  readonly clock: Clock
  readonly random: Random
}

export interface ProvisionStep {
  /** Such as `table millrace_jobs`. */
  readonly resource: string
  readonly action: 'create' | 'change' | 'keep'
  readonly detail?: string
}

export interface Provisioning {
  /** What would be done, by a look at what is there. Changes nothing. */
  plan(): Promise<readonly ProvisionStep[]>
  /**
   * Does it, and waits until everything can be used; tells each step when it is done. Doing it again changes nothing; what is
   * there with other keys is refused and left alone.
   */
  apply(done?: (step: ProvisionStep) => void): Promise<void>
  /** Everything that should be there, in words. Asks nobody. */
  text(): string
  /** The same as a CloudFormation template, in JSON. Asks nobody. */
  template(): string
}

const retry: RetryPolicy = { attemptsMax: 10, baseMs: 100, capMs: 5_000 }
/** A table takes up to a minute or two until it can be used. */
const tablesMs = 5 * 60_000

const actions = { absent: 'create', present: 'keep', incomplete: 'change', different: 'change' } as const

export const createProvisioning = (deps: ProvisionDeps, options: PlanOptions): Provisioning => {
  const { region, endpoint, credentials, tablePrefix, queuePrefix, deadlineMs } = options.aws
  const plan = planOf(options)
  const common = { region, ...(credentials ? { credentials } : {}) }
  const tables = {
    ...common,
    ...(endpoint.dynamodb ? { endpoint: endpoint.dynamodb } : {}),
    schemas: provisionedTables,
    tablePrefix,
    deadlineMs: tablesMs,
    callMs: deadlineMs,
    retry,
  }
  const queues = {
    ...common,
    ...(endpoint.sqs ? { endpoint: endpoint.sqs } : {}),
    prefix: queuePrefix,
    queues: options.jobs.queues,
  }

  const tableSteps = async (): Promise<readonly ProvisionStep[]> => {
    const found = await lookAtTables(deps, { ...tables, deadlineMs })
    return plan.tables.map(({ input, ttl }, index) => {
      const state = found[index] ?? 'absent'
      const detail = state === 'incomplete' ? { detail: `rows expire by ${ttl}` } : {}
      return { resource: `table ${input.TableName}`, action: actions[state], ...detail }
    })
  }
  const queueSteps = async (): Promise<readonly ProvisionStep[]> => {
    const found = await lookAtQueues(deps, queues)
    return plan.queues.map(({ name }, index) => ({
      resource: `queue ${name}`,
      action: actions[found[index] ?? 'absent'],
    }))
  }

  return {
    plan: async () => [...(await tableSteps()), ...(await queueSteps())],
    apply: async (done = () => {}) => {
      const made = await tableSteps()
      await provisionTables(deps, tables)
      for (const step of made) done(step)
      const sent = await queueSteps()
      await provisionQueues(deps, queues)
      for (const step of sent) done(step)
    },
    text: () => planText(plan),
    template: () => `${JSON.stringify(templateOf(plan), null, 2)}\n`,
  }
}
