// Fifty workers finish the tasks of one parent: each finish stores the task's outcome and counts it on the parent. Through the
// persistence actor, against one call of the storage per finish. Run: npm run bench -- workers

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { loadOptions } from '../../src/config/load.ts'
import { systemClock } from '../../src/kernel/clock.ts'
import { systemRandom } from '../../src/kernel/random.ts'
import { systemHost } from '../../src/tables/lmdb/host.ts'
import { openLmdb } from '../../src/tables/lmdb.ts'
import type { Action, TableSchema, Tables, Write } from '../../src/tables/port.ts'
import { createPersistence } from '../../src/write-behind/persist.ts'
import type { Row } from './row.ts'

const schema: TableSchema = { name: 'tasks', partition: 'task_id', indexes: {} }
const workers = 50
const tasksPerWorker = 100

const finished = (id: string): Action => ({
  kind: 'put',
  table: 'tasks',
  row: { task_id: id, state: 'done', finished_at: systemClock.now() },
})
const counted: Action = { kind: 'update', table: 'tasks', key: ['parent'], add: { finished: 1 } }

type Finish = (tables: Tables, id: string) => Promise<unknown>

const directly: Finish = (tables, id) => tables.commit([{ actions: [finished(id), counted] }])

/** Durable before the worker goes on, and the count may wait for company. */
const through: Finish = (tables, id) => {
  const count: Write = { actions: [counted], lane: 'later', merge: true }
  void tables.commit([count])
  return tables.commit([{ actions: [finished(id)] }])
}

const deps = { clock: systemClock, random: systemRandom, emit: () => {}, host: systemHost(), warn: () => {} }

const run = async (finish: Finish, wrap: (tables: Tables) => Tables): Promise<{ calls: number; seconds: number }> => {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-bench-'))
  const fatal = (error: unknown): never => {
    throw error
  }
  const local = await openLmdb({ ...deps, fatal }, { path: folder, schemas: [schema] })
  let calls = 0
  const counting: Tables = {
    ...local,
    commit: (writes) => {
      calls += 1
      return local.commit(writes)
    },
  }
  const tables = wrap(counting)
  const begun = performance.now()
  const worker = async (w: number) => {
    for (let n = 0; n < tasksPerWorker; n++) await finish(tables, `${w}/${n}`)
  }
  await Promise.all(Array.from({ length: workers }, (_, w) => worker(w)))
  const seconds = (performance.now() - begun) / 1_000
  const before = calls
  await tables.close()
  // What was still waiting when the workers had ended counts as well.
  const total = Math.max(calls, before)
  const again = await openLmdb({ ...deps, fatal }, { path: folder, schemas: [schema] })
  const parent = await again.get('tasks', ['parent'])
  if (parent?.['finished'] !== workers * tasksPerWorker) throw new Error(`the parent counts ${parent?.['finished']}`)
  await again.close()
  rmSync(folder, { recursive: true })
  return { calls: total, seconds }
}

export const benchWorkers = async (): Promise<readonly Row[]> => {
  const { writeBehind } = loadOptions({})
  const bare = await run(directly, (tables) => tables)
  const ours = await run(through, (tables) => createPersistence(deps, tables, [schema], writeBehind))
  const ratio = ours.calls / bare.calls
  const tasks = workers * tasksPerWorker
  return [
    { name: `${workers} workers, one storage call per finish`, value: bare.calls, unit: 'transactions' },
    {
      name: `${workers} workers through the persistence actor`,
      value: ours.calls,
      unit: 'transactions',
      ratio,
      target: 0.05,
      ok: ratio <= 0.05,
    },
    { name: `${workers} workers, one storage call per finish`, value: tasks / bare.seconds, unit: 'tasks/s' },
    { name: `${workers} workers through the persistence actor`, value: tasks / ours.seconds, unit: 'tasks/s' },
  ]
}
