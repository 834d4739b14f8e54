import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import { describe, expect, test } from 'vitest'
import { ExecutionConfigSchema, JobState, Priority } from '../../api/gen/millrace/v1/job_pb.js'
import { loadOptions } from '../../src/config/load.ts'
import { jobStates } from '../../src/jobs/transitions.ts'
import { priorities } from '../../src/queues/port.ts'

const namesOf = (numbers: object): string[] =>
  Object.entries(numbers)
    .filter(([, number]) => typeof number === 'number' && number > 0)
    .map(([name]) => name)

describe('the wire contract', () => {
  test('knows the states and the priorities of the store, and no others', () => {
    expect(namesOf(JobState)).toEqual([...jobStates])
    expect(namesOf(Priority)).toEqual(priorities.map((name) => name.toUpperCase()))
    expect([JobState.SCHEDULED, JobState.RUNNING, JobState.COMPLETED, JobState.FAILED, JobState.CANCELLED]).toEqual([
      1, 2, 3, 4, 5,
    ])
  })

  test('R0.24 an ExecutionConfig makes the round trip with every field', () => {
    const given = { jobs: { execution: { graceMs: 1_234, maxOutputBytes: 2 ** 40 } } }
    const { leaseMs, heartbeatMs, graceMs, maxOutputBytes, ...batching } = loadOptions(given).jobs.execution
    const own = { leaseMs, heartbeatMs, graceMs, maxOutputBytes: BigInt(maxOutputBytes) }
    const config = create(ExecutionConfigSchema, { ...own, batching })
    const back = fromBinary(ExecutionConfigSchema, toBinary(ExecutionConfigSchema, config))
    expect(back).toMatchObject(own)
    expect(back.batching).toMatchObject(batching)
  })
})
