// What the LMDB adapter costs over LMDB itself: groups of conditional updates of kept rows, against a loop that puts the same
// bytes under the same keys in one durable transaction per group. Run: npx tsx scripts/bench/lmdb.ts

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { systemClock } from '../../src/kernel/clock.ts'
import { systemRandom } from '../../src/kernel/random.ts'
import { loadEngine, openEnvironment, openTables } from '../../src/tables/lmdb/environment.ts'
import { systemHost } from '../../src/tables/lmdb/host.ts'
import { encodePlace } from '../../src/tables/lmdb/keys.ts'
import { copyOf, createRecordArena, type RecordPlan, type Span } from '../../src/tables/lmdb/record.ts'
import { openLmdb } from '../../src/tables/lmdb.ts'
import type { Row, TableSchema, Write } from '../../src/tables/port.ts'
import { median } from './row.ts'

const schema: TableSchema = {
  name: 'jobs',
  partition: 'job_id',
  ttl: 'ttl',
  indexes: { due: { partition: 'due_shard', sort: { attribute: 'due_at', type: 'number' } } },
}

const startedMs = 1_790_000_000_000

const aJob = (n: number, round: number): Row => ({
  job_id: `0197f000-0000-7000-8000-${String(n).padStart(12, '0')}`,
  queue: 'default',
  priority: 'normal',
  state: 'RUNNING',
  attempt: round,
  renewals: 0,
  worker_id: 'a1b2c3d4e5f6-1',
  not_before: startedMs,
  timeout_ms: 60_000,
  execution_config: JSON.stringify({
    command: ['node', 'work.js', '--all'],
    directory: '/home/somebody/project',
    tail: 'x'.repeat(80),
  }),
  failed_attempts: 0,
  lost_attempts: 0,
  unheard_claims: 0,
  postponed: 0,
  run: 1,
  sends: 0,
  claim_id: 'aabbccddeeff00112233445566778899',
  request_id: 'aabbccddeeff0011-2233445566778899',
  created_at: startedMs,
  updated_at: startedMs + round,
  due_shard: `${n % 16}`,
  due_at: startedMs + 60_000 * round + n,
})

const update = (n: number, round: number): Write => {
  const next = aJob(n, round)
  return {
    actions: [
      {
        kind: 'update',
        table: 'jobs',
        key: [next['job_id'] as string],
        set: {
          state: 'RUNNING',
          updated_at: next['updated_at'] as number,
          due_at: next['due_at'] as number,
          claim_id: next['claim_id'] as string,
        },
        add: { attempt: 1 },
        keep: true,
        if: {
          test: 'all',
          of: [
            { test: '=', attribute: 'state', value: 'RUNNING' },
            { test: '=', attribute: 'attempt', value: round - 1 },
          ],
        },
      },
    ],
  }
}

interface Rival {
  readonly group: (round: number, size: number) => () => Promise<void>
  readonly end: () => Promise<void>
}

const ours = async (path: string, size: number): Promise<Rival> => {
  const stop = (error: unknown): never => {
    throw error
  }
  const deps = { clock: systemClock, random: systemRandom, host: systemHost(), fatal: stop, warn: () => {} }
  const tables = await openLmdb(deps, { path, schemas: [schema] })
  const rows = Array.from({ length: size }, (_, n) => aJob(n, 0))
  await tables.commit(rows.map((row) => ({ actions: [{ kind: 'put', table: 'jobs', row, keep: true }] })))
  return {
    group: (round) => {
      const writes = rows.map((_, n) => update(n, round))
      return async () => {
        const verdicts = await tables.commit(writes)
        if (verdicts.some(({ kind }) => kind !== 'done')) throw new Error('a write was not done')
      }
    },
    end: () => tables.close(),
  }
}

const bare = async (path: string): Promise<Rival> => {
  const environment = openEnvironment(await loadEngine(), path, { mapBytes: 1024 ** 3, readOnly: false })
  const table = openTables(environment, [schema])[0]
  const due = table?.indexes[0]
  if (!table || !due) throw new Error('no table')
  const one = Buffer.alloc(1)
  return {
    group: (round, size) => {
      const puts = Array.from({ length: size }, (_, n) => {
        const row = aJob(n, round)
        const key = row['job_id'] as string
        return {
          key,
          record: recordOf(row, table.plan),
          old: encodePlace(due.index, aJob(n, round - 1), key) ?? '',
          fresh: encodePlace(due.index, row, key) ?? '',
        }
      })
      arena.reset()
      return async () => {
        await environment.root.batch(() => {
          for (const { key, record, old, fresh } of puts) {
            void table.rows.put(key, record)
            void due.entries.remove(old)
            void due.entries.put(fresh, one)
          }
        })
      }
    },
    end: () => environment.root.close(),
  }
}

const arena = createRecordArena()

const recordOf = (row: Row, plan: RecordPlan): Buffer => {
  const span: Span = { chunk: undefined, start: 0, end: 0 }
  arena.encode(row, plan, span)
  return copyOf(span)
}

const measure = async (size: number, groups: number): Promise<void> => {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-bench-'))
  const rivals = [await bare(join(folder, 'bare')), await ours(join(folder, 'ours'), size)]
  const spent: [number[], number[]] = [[], []]
  // Turn about, so that whatever else the machine does falls on both alike.
  for (let round = 1; round <= groups + warmUp; round++) {
    for (const [at, rival] of rivals.entries()) {
      const group = rival.group(round, size)
      const begun = performance.now()
      await group()
      if (round > warmUp) spent[at]?.push(performance.now() - begun)
    }
  }
  for (const rival of rivals) await rival.end()
  rmSync(folder, { recursive: true })
  const [bareMs, oursMs] = [median(spent[0]), median(spent[1])]
  const rate = (ms: number) => Math.round((size / ms) * 1_000).toLocaleString('en')
  console.log(
    `groups of ${size}: bare ${bareMs.toFixed(2)} ms (${rate(bareMs)} rows/s), adapter ${oursMs.toFixed(2)} ms ` +
      `(${rate(oursMs)} rows/s), ratio ${(bareMs / oursMs).toFixed(2)}`,
  )
}

const warmUp = 30

await measure(32, 1_000)
await measure(1_000, 200)
