import { describe, expect, test } from 'vitest'
import { readEnvironment, variableOf } from '../../src/config/environment.ts'
import { originText } from '../../src/config/layer.ts'
import { seedNames } from '../../src/config/seed-names.ts'
import { allKeys } from '../../src/config/shape.ts'
import { checkSources, loadSources, problemText, type Sources } from '../../src/config/sources.ts'

const from = (given: { yaml?: string; env?: Record<string, string>; flags?: Sources['flags'] }): Sources => ({
  file: given.yaml === undefined ? undefined : { path: 'millrace.yaml', text: given.yaml },
  env: given.env ?? {},
  flags: given.flags ?? [],
  usualDataDir: '/usual',
})

const problemsOf = (sources: Sources): readonly string[] => {
  const checked = checkSources(sources)
  return checked.ok ? [] : checked.problems.map(problemText)
}

describe('precedence', () => {
  const yaml = 'jobs:\n  retentionMs: 100000\n  logRetentionMs: 100000\n  sweepIntervalMs: 1000\n'
  const env = { MILLRACE_JOBS__RETENTION_MS: '200000', MILLRACE_JOBS__LOG_RETENTION_MS: '200000' }
  const flags = [{ key: 'jobs.retentionMs', value: '300000', flag: '--set' }]

  test('a file wins over defaults, a variable over the file, a flag over both', () => {
    const { options, originOf } = loadSources(from({ yaml, env, flags }))
    expect(options.jobs).toMatchObject({ retentionMs: 300_000, logRetentionMs: 200_000, sweepIntervalMs: 1_000 })
    expect(options.jobs.requestRetentionMs).toBe(14 * 86_400_000)
    const origins = ['retentionMs', 'logRetentionMs', 'sweepIntervalMs', 'requestRetentionMs'].map((name) =>
      originText(originOf(['jobs', name])),
    )
    expect(origins).toEqual(['flag --set', 'variable MILLRACE_JOBS__LOG_RETENTION_MS', 'millrace.yaml:4:20', 'default'])
  })

  test('the data directory: the usual place, the file, the variables, the flag', () => {
    const directory = (sources: Sources) => loadSources(sources).options.embedded.directory
    const file = 'embedded: { directory: /file }'
    const variables = { MILLRACE_EMBEDDED__DIRECTORY: '/variable', MILLRACE_DATA_DIR: '/data-dir' }
    const flag = [{ key: 'embedded.directory', value: '/flag', flag: '--data-dir' }]
    expect(directory(from({}))).toBe('/usual')
    expect(directory(from({ yaml: file }))).toBe('/file')
    expect(directory(from({ yaml: file, env: variables }))).toBe('/data-dir')
    expect(directory(from({ yaml: file, env: variables, flags: flag }))).toBe('/flag')
    expect(originText(loadSources(from({})).originOf(['embedded', 'directory']))).toBe(
      'the usual place on this platform',
    )
  })

  test('what comes out is frozen', () => {
    expect(Object.isFrozen(loadSources(from({ yaml })).options.jobs)).toBe(true)
  })
})

describe('variables', () => {
  test('every option has a variable that leads back to it', () => {
    for (const key of allKeys()) {
      const name = variableOf(key.split('.'))
      const { settings } = readEnvironment({ [name]: '1' })
      expect(settings.map(({ path }) => path.join('.'))).toEqual([key])
    }
  })

  test('texts become the type that the option has', () => {
    const { options } = loadSources(
      from({
        env: {
          MILLRACE_PROFILE: 'aws',
          MILLRACE_JOBS__QUEUES: 'default, priority',
          MILLRACE_JOBS__EXECUTION__MAX_BATCH_SIZE: '10',
          MILLRACE_SIGNING__KEYS: `[{"id":"a","secret":"${'A'.repeat(44)}"}]`,
        },
      }),
    )
    expect(options.profile).toBe('aws')
    expect(options.jobs.queues).toEqual(['default', 'priority'])
    expect(options.jobs.execution.maxBatchSize).toBe(10)
    expect(options.signing.keys[0]?.id).toBe('a')
  })

  test('R1.26 the variables of AWS are understood, and its keys are left where they are', () => {
    const { options } = loadSources(
      from({
        env: {
          AWS_REGION: 'us-west-2',
          AWS_DEFAULT_REGION: 'eu-west-1',
          AWS_ENDPOINT_URL: 'http://127.0.0.1:4566',
          AWS_ENDPOINT_URL_SQS: 'http://127.0.0.1:9324',
          AWS_ACCESS_KEY_ID: 'AKIAIOSFODNN7EXAMPLE',
          AWS_SECRET_ACCESS_KEY: 'hunter2hunter2',
        },
      }),
    )
    expect(options.aws.region).toBe('us-west-2')
    expect(options.aws.endpoint).toEqual({ dynamodb: 'http://127.0.0.1:4566', sqs: 'http://127.0.0.1:9324' })
    expect(options.aws.credentials).toBeUndefined()
    expect(JSON.stringify(options)).not.toContain('hunter2')
  })

  test('R1.24 variables of telemetry that are absent or present are nobody’s error', () => {
    const env = { OTEL_EXPORTER_OTLP_ENDPOINT: 'https://x.example', OTEL_SERVICE_NAME: 'a' }
    expect(problemsOf(from({ env }))).toEqual([])
  })

  test('an unknown one is refused with what may have been meant; one that may be anybody’s is only noted', () => {
    expect(() => loadSources(from({ env: { MILLRACE_JOBS__RETENTON_MS: '5' } }))).toThrow(
      'variable MILLRACE_JOBS__RETENTON_MS: there is no option jobs.retentonMs; did you mean MILLRACE_JOBS__RETENTION_MS?',
    )
    const checked = checkSources(from({ env: { MILLRACE_WHATEVER: '5', MILLRACE_JOB_ID: 'x' } }))
    expect(checked.ok && checked.effective.notes).toEqual([
      'variable MILLRACE_WHATEVER is no option and was left alone; docs/options.md has them all',
    ])
  })

  test('an empty variable is an absent one', () => {
    expect(loadSources(from({ env: { MILLRACE_DATA_DIR: '', AWS_REGION: '' } })).options.embedded.directory).toBe(
      '/usual',
    )
  })
})

describe('config check', () => {
  test('R0.18 names key, value, limit, reason, file and line; all of them', () => {
    const yaml = 'jobs:\n  retentionMs: 5\n  execution:\n    maxBatchBytes: 1048576\nprofil: aws\n'
    expect(problemsOf(from({ yaml }))).toEqual([
      expect.stringMatching(/^jobs\.execution\.maxBatchBytes = 1048576: .*389120.* \(millrace\.yaml:4:20\)$/),
      expect.stringMatching(/^jobs\.retentionMs = 5: .*60000.* \(millrace\.yaml:2:16\)$/),
      'profil: there is no such option; did you mean profile? (millrace.yaml:5:9)',
    ])
  })

  test('an unknown section, and an unknown name within a known one', () => {
    expect(problemsOf(from({ yaml: 'job:\n  retentionMs: 100000\njobs:\n  queue: [a]\n' }))).toEqual([
      'jobs.queue: there is no such option; did you mean jobs.queues? (millrace.yaml:4:10)',
      'job: there is no such option; did you mean jobs.retentionMs? (millrace.yaml:2:16)',
    ])
  })

  test('a wrong variable or flag is named as such', () => {
    const flags = [{ key: 'jobs.sweepIntervalMs', value: 'soon', flag: '--set' }]
    expect(problemsOf(from({ env: { MILLRACE_PROFILE: 'oracle' }, flags }))).toEqual([
      expect.stringMatching(/^profile = "oracle": .* \(variable MILLRACE_PROFILE\)$/),
      expect.stringMatching(/^jobs\.sweepIntervalMs = "soon": .*number.* \(flag --set\)$/),
    ])
  })

  test('M13 what could be a secret is never shown', () => {
    const yaml =
      'signing:\n  keys: [{ id: a, secret: hunter2 }]\naws:\n  credentials: { accessKeyId: "", secretAccessKey: "" }\n'
    const problems = problemsOf(from({ yaml })).join('\n')
    expect(problems).toContain('signing.keys.0.secret')
    expect(problems).toContain('millrace.yaml:2')
    expect(problems).not.toContain('hunter2')
  })

  test.each([
    ['a: [1\n', /^millrace\.yaml:2:1: this is not YAML/],
    ['jobs:\n  retentionMs: 1\n  retentionMs: 2\n', /^millrace\.yaml:3:3: this is not YAML \(duplicate_key\)/],
    ['- a\n', /names with their values/],
    ['password: "hunter2', /^(?!.*hunter2).*this is not YAML/],
  ])('%j is refused with where it is', (text, message) => {
    expect(() => loadSources(from({ yaml: text }))).toThrow(message)
  })

  test('M17 names that every object has are no names of options', () => {
    expect(() => loadSources(from({ yaml: '__proto__:\n  profile: aws\n' }))).toThrow(/cannot be the name/)
    expect(() => loadSources(from({ yaml: 'jobs: { constructor: 1 }' }))).toThrow(/cannot be the name/)
    loadSources(from({ flags: [{ key: '__proto__.profile', value: 'aws', flag: '--set' }] }))
    expect(({} as Record<string, unknown>)['profile']).toBeUndefined()
  })

  test('an empty file, an empty section and comments say nothing', () => {
    expect(loadSources(from({ yaml: '' })).options).toEqual(loadSources(from({})).options)
    expect(loadSources(from({ yaml: '# all\njobs:\n  # none\naws: {}\n' })).options).toEqual(
      loadSources(from({})).options,
    )
  })
})

const seedFile = `store:
  type: sqs
  aws:
    region: us-west-2
  sqs:
    queues:
      default: https://sqs.us-west-2.amazonaws.com/1/airunner-prod-default
      priority: https://sqs.us-west-2.amazonaws.com/1/airunner-prod-priority
    default_visibility_timeout_seconds: 300
  dynamodb:
    jobs_table: airunner_jobs
    events_table: airunner_job_events
    events_ttl_days: 30
  execution:
    batching:
      flush_interval_seconds: 2
      max_batch_size: 50
      max_batch_bytes: 262144
      playback_interval_millis: 50
    heartbeat_interval_seconds: 30
`

describe('names of older job runners', () => {
  test('R0.16 R0.17 R1.9 R1.26 mean the same here, in our units', () => {
    const { options, notes } = loadSources(from({ yaml: seedFile }))
    expect(options.profile).toBe('aws')
    expect(options.aws).toMatchObject({ region: 'us-west-2', tablePrefix: 'airunner_' })
    expect(options.jobs).toMatchObject({ queues: ['default', 'priority'], logRetentionMs: 30 * 86_400_000 })
    expect(options.jobs.execution).toMatchObject({
      leaseMs: 300_000,
      heartbeatMs: 30_000,
      flushIntervalMs: 2_000,
      maxBatchSize: 50,
      maxBatchBytes: 262_144,
      playbackIntervalMs: 50,
    })
    expect(notes).toContain(
      'store.sqs.default_visibility_timeout_seconds is jobs.execution.leaseMs here (millrace.yaml:9:41)',
    )
    expect(notes).toHaveLength(Object.keys(seedNames).length + 3)
  })

  test('R0.16 the batch of 1 MB is refused under both names, with the limit', () => {
    const yaml = seedFile.replace('262144', '1048576')
    expect(problemsOf(from({ yaml }))).toEqual([
      expect.stringMatching(
        /^jobs\.execution\.maxBatchBytes = 1048576: store\.execution\.batching\.max_batch_bytes is jobs\.execution\.maxBatchBytes here; .*389120.*\(millrace\.yaml:18:24\)$/,
      ),
    ])
  })

  test('R1.9 events that are kept for ever are kept as long as can be', () => {
    const yaml = 'store: { dynamodb: { events_ttl_days: 0 } }'
    expect(loadSources(from({ yaml })).options.jobs.logRetentionMs).toBe(3_650 * 86_400_000)
  })

  test.each([
    ['store: { dynamodb: { jobs_table: tasks } }', /store\.dynamodb\.jobs_table; tables are named by aws\.tablePrefix/],
    ['store: { dynamodb: { jobs_table: a_jobs, events_table: b_job_events } }', /aws\.tablePrefix/],
    ['store: { token_signing_secret: hunter2 }', /^(?!.*hunter2).*signing\.keys/],
    ['store: { redis: 1 }', /there is no option store\.redis/],
  ])('R0.17 %j cannot be translated, and the message says what to write', (yaml, message) => {
    expect(() => loadSources(from({ yaml }))).toThrow(message)
  })
})
