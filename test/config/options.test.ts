import { describe, expect, test } from 'vitest'
import { loadOptions } from '../../src/config/load.ts'

describe('options', () => {
  test('have defaults, and are frozen all the way down', () => {
    const options = loadOptions({})
    expect(options.profile).toBe('embedded')
    expect(options.jobs.execution).toMatchObject({ leaseMs: 60_000, heartbeatMs: 20_000, maxBatchSize: 50 })
    expect(Object.isFrozen(options.jobs.execution)).toBe(true)
    expect(Object.isFrozen(options.jobs.queues)).toBe(true)
    expect(loadOptions(undefined)).toEqual(options)
  })

  test.each([
    [{ jobs: { retentionMs: 5 } }, 'jobs.retentionMs', /jobs\.retentionMs = 5: .*60000/],
    [{ jobs: { execution: { leaseMs: 'x' } } }, 'jobs.execution.leaseMs', /= "x": .*number/],
    [
      { jobs: { execution: { heartbeatMs: 40_000 } } },
      'jobs.execution.heartbeatMs',
      /must fit three times into leaseMs/,
    ],
    [{ jobs: { execution: { maxBatchBytes: 1_048_576 } } }, 'jobs.execution.maxBatchBytes', /= 1048576: .*389120/],
    [{ jobs: { execution: { maxBatchSize: 3_000 } } }, 'jobs.execution.maxBatchSize', /must not exceed batchSizeBound/],
    [{ jobs: { queues: ['A B'] } }, 'jobs.queues.0', /= "A B": small letters/],
    [{ profile: 'oracle' }, 'profile', /embedded/],
    [{ signing: { keys: [{ id: 'a', secret: 'hunter2' }] } }, 'signing.keys.0.secret', /^(?!.*hunter2)/],
    [
      { aws: { credentials: { accessKeyId: 'a', secretAccessKey: 'hunter2', x: 1 } } },
      'aws.credentials',
      /^(?!.*hunter2)/,
    ],
    [{ nope: 1 }, '(top)', /nope/],
    [5, '(top)', /object/],
  ])('R0.18 %j names key, value, limit and reason', (given, field, text) => {
    expect(() => loadOptions(given)).toThrow(expect.objectContaining({ code: 'CONFIG_INVALID', field }))
    expect(() => loadOptions(given)).toThrow(text)
  })
})
