// Names that older job runners use for what has another name here. They are understood, in the units they come in, and a note
// says how the option is called. docs/cli.md lists them.

import { ConfigInvalid } from './faults.ts'
import { type Layer, originText, type Setting } from './layer.ts'

const secondMs = 1_000
const dayMs = 86_400_000
/** What `keep for ever` becomes: the longest that can be asked for. */
const keptDaysMax = 3_650

type Translation = { readonly to: string; readonly value: (given: unknown) => unknown }

const times =
  (factor: number) =>
  (given: unknown): unknown =>
    typeof given === 'number' ? Math.round(given * factor) : given
const same = (given: unknown): unknown => given

/** From a name in the file to the option. What is not a number is passed on as it is, and refused there with its limits. */
export const seedNames: Readonly<Record<string, Translation>> = {
  'store.type': {
    to: 'profile',
    value: (given) => (given === 'sqs' || given === 'dynamodb' ? 'aws' : given),
  },
  'store.aws.region': { to: 'aws.region', value: same },
  'store.sqs.default_visibility_timeout_seconds': { to: 'jobs.execution.leaseMs', value: times(secondMs) },
  'store.dynamodb.events_ttl_days': {
    to: 'jobs.logRetentionMs',
    value: (given) => times(dayMs)(given === 0 ? keptDaysMax : given),
  },
  'store.execution.heartbeat_interval_seconds': { to: 'jobs.execution.heartbeatMs', value: times(secondMs) },
  'store.execution.batching.flush_interval_seconds': { to: 'jobs.execution.flushIntervalMs', value: times(secondMs) },
  'store.execution.batching.max_batch_size': { to: 'jobs.execution.maxBatchSize', value: same },
  'store.execution.batching.max_batch_bytes': { to: 'jobs.execution.maxBatchBytes', value: same },
  'store.execution.batching.playback_interval_millis': { to: 'jobs.execution.playbackIntervalMs', value: same },
}

/** Names that cannot be translated one by one, and what to write instead. */
export const seedHints: Readonly<Record<string, string>> = {
  'store.dynamodb.jobs_table': 'tables are named by aws.tablePrefix here: the prefix and `jobs`',
  'store.dynamodb.events_table': 'tables are named by aws.tablePrefix here: the prefix and `job_events`',
  'store.token_signing_secret': 'keys that sign are in signing.keys here, each with an id',
}

const queuesName = 'store.sqs.queues'

export const translateSeedNames = (settings: readonly Setting[]): Layer => {
  const notes: string[] = []
  const kept: Setting[] = []
  const queues = settings.filter(({ path }) => path.length === 4 && path.slice(0, 3).join('.') === queuesName)
  const tables = tablePrefix(settings)
  for (const setting of settings) {
    const spelled = setting.path.join('.')
    const translation = seedNames[spelled]
    if (setting.path[0] !== 'store') kept.push(setting)
    else if (translation) {
      notes.push(`${spelled} is ${translation.to} here (${originText(setting.origin)})`)
      kept.push({ ...setting, path: translation.to.split('.'), value: translation.value(setting.value), spelled })
    } else if (tables?.settings.includes(setting)) {
      notes.push(`${spelled} is aws.tablePrefix here (${originText(setting.origin)})`)
      kept.push({ ...setting, path: ['aws', 'tablePrefix'], value: tables.prefix, spelled })
    } else if (!queues.includes(setting)) {
      const hint = seedHints[spelled] ?? 'docs/cli.md lists the names that are understood'
      throw new ConfigInvalid(`${originText(setting.origin)}: there is no option ${spelled}; ${hint}`, {
        field: spelled,
      })
    }
  }
  const [first] = queues
  if (first) {
    notes.push(
      `${queuesName} is jobs.queues here, a list of names; the addresses follow from aws.queuePrefix (${originText(first.origin)})`,
    )
    const value = queues.map(({ path }) => path[3])
    kept.push({ path: ['jobs', 'queues'], value, origin: first.origin, spelled: queuesName })
  }
  return { settings: kept, notes }
}

/** Two names of tables are one prefix if they end as ours do. */
const tablePrefix = (
  all: readonly Setting[],
): { readonly prefix: string; readonly settings: readonly Setting[] } | undefined => {
  const find = (name: string) => all.find(({ path }) => path.join('.') === `store.dynamodb.${name}`)
  const [jobs, events] = [find('jobs_table'), find('events_table')]
  const prefixes = [prefixOf(jobs, 'jobs'), prefixOf(events, 'job_events')].filter((prefix) => prefix !== undefined)
  const [prefix] = prefixes
  const settings = [jobs, events].filter((setting) => setting !== undefined)
  const fits = prefix !== undefined && prefixes.length === settings.length && prefixes.every((one) => one === prefix)
  return fits ? { prefix, settings } : undefined
}

const prefixOf = (setting: Setting | undefined, ending: string): string | undefined =>
  typeof setting?.value === 'string' && setting.value.endsWith(ending)
    ? setting.value.slice(0, -ending.length)
    : undefined
