import { createSeededRandom } from '../../src/sim/seeded-random.ts'
import { createVirtualClock, type VirtualClock } from '../../src/sim/virtual-clock.ts'
import { type DynamodbCall, type DynamodbOptions, openDynamodb } from '../../src/tables/dynamodb.ts'
import type { Action, Row, Tables, Verdict } from '../../src/tables/port.ts'
import { contractSchemas } from '../contract/tables.ts'
import { type Double, startDouble } from './dynamodb-double.ts'

export interface Fixture {
  readonly double: Double
  readonly tables: Tables
  readonly clock: VirtualClock
  readonly events: readonly DynamodbCall[]
  /** Commits one write and gives its verdict. */
  commit(...actions: Action[]): Promise<Verdict>
  /** Operations in the order of their calls. */
  operations(): readonly string[]
  end(): Promise<void>
}

export const retry = { attemptsMax: 5, baseMs: 100, capMs: 1_000 }
export const callMs = 2_000
export const deadlineMs = 60_000

/** The adapter before a scripted service. Pauses between tries pass by themselves; deadlines only when the test says so. */
export const openFixture = async (options: Partial<DynamodbOptions> = {}): Promise<Fixture> => {
  const double = await startDouble()
  const clock = createVirtualClock()
  const events: DynamodbCall[] = []
  let passing = Promise.resolve()
  const emit = (event: DynamodbCall) => {
    events.push(event)
    const ms = event.retryInMs
    if (ms !== undefined) passing = passing.then(() => clock.advance(ms))
  }
  const tables = await openDynamodb(
    { clock, random: createSeededRandom(1), emit },
    {
      schemas: contractSchemas,
      region: 'local',
      endpoint: double.endpoint,
      credentials: { accessKeyId: 'any', secretAccessKey: 'any' },
      deadlineMs,
      callMs,
      retry,
      ...options,
    },
  )
  return {
    double,
    tables,
    clock,
    events,
    commit: async (...actions) => (await tables.commit([{ actions }]))[0] as Verdict,
    operations: () => double.calls.map(({ operation }) => operation),
    end: async () => {
      await tables.close()
      await double.close()
    },
  }
}

export const thing = (id: string, rest: Row = {}): Row => ({ thing_id: id, ...rest })
export const put = (row: Row): Action => ({ kind: 'put', table: 'things', row })
export const putIfAbsent = (row: Row): Action => ({ kind: 'put', table: 'things', row, if: { test: 'absent' } })
export const upTo = (count: number): number[] => Array.from({ length: count }, (_, n) => n)
