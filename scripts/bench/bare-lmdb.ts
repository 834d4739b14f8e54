// What the store is measured against: a hand-written loop over LMDB that leaves the same rows and index entries behind, in the
// same three durable steps a job, and decides nothing. One form makes the rows of each job and lets the library encode them, as
// any program has to. The other puts bytes that were made beforehand: what LMDB itself costs, and no store can reach.

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Database, open } from 'lmdb'
import { dueShards, listKey, listShard, listShards } from '../../src/jobs/keys.ts'
import { systemClock } from '../../src/kernel/clock.ts'
import { createIds } from '../../src/kernel/ids.ts'
import { systemRandom } from '../../src/kernel/random.ts'
import { spread } from '../../src/kernel/spread.ts'
import { logId } from '../../src/log/keys.ts'
import type { Row } from '../../src/tables/port.ts'

export interface Rival {
  /** Runs so many jobs with so many in flight. */
  run(jobs: number, inFlight: number): Promise<unknown>
  end(): Promise<void>
}

/** The rows of one job as the store left them after each step. */
export interface Templates {
  readonly enqueued: Row
  readonly message: Row
  readonly claimed: Row
  readonly settled: Row
  readonly end: Row
}

/** As many flows as jobs may be in flight, each waiting for every step to be durable. */
export const bareLmdb = (templates: Templates, form: 'rows' | 'bytes'): Rival => {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-bench-'))
  const root = open({ path: folder, overlappingSync: false, encoding: 'binary', maxDbs: 32 })
  const rowsOf = (name: string): Database<unknown, string> =>
    root.openDB(name, { encoding: form === 'rows' ? 'msgpack' : 'binary' })
  const keysOf = (name: string): Database<Buffer, string> => root.openDB(name, { encoding: 'binary' })
  const [jobs, queue, events] = [rowsOf('jobs'), rowsOf('queue'), rowsOf('events')]
  const [listing, due, expiry] = [keysOf('listing'), keysOf('due'), keysOf('expiry')]
  const made = new Map<Row, Buffer>()
  for (const row of Object.values(templates)) made.set(row, Buffer.alloc(encodedBytes(root, row), 7))
  const stored = (template: Row, own: Row): unknown => (form === 'rows' ? { ...template, ...own } : made.get(template))
  const ids = createIds(systemClock, systemRandom)

  const runOne = async (): Promise<void> => {
    const id = ids.next()
    const createdAt = systemClock.now()
    const shard = listShard('default', spread(id, listShards))
    const place = `${createdAt.toString().padStart(16, '0')}#${id}#0`
    const own = {
      job_id: id,
      created_at: createdAt,
      list_shard: shard,
      list_key: listKey(createdAt, id),
      due_shard: String(spread(id, dueShards)),
    }
    void jobs.put(id, stored(templates.enqueued, { ...own, updated_at: createdAt, not_before: createdAt }))
    void listing.put(`${shard}\0${own.list_key}\0${id}`, present)
    await queue.put(`default#normal\0${place}`, stored(templates.message, { place }))

    const claimedAt = systemClock.now()
    const dueKey = `${own.due_shard}\0${claimedAt + 60_000}\0${id}`
    void jobs.put(id, stored(templates.claimed, { ...own, updated_at: claimedAt, due_at: claimedAt + 60_000 }))
    void due.put(dueKey, present)
    await queue.remove(`default#normal\0${place}`)

    const settledAt = systemClock.now()
    void jobs.put(id, stored(templates.settled, { ...own, updated_at: settledAt }))
    void due.remove(dueKey)
    void expiry.put(`${templates.settled['ttl']}\0${id}`, present)
    await events.put(`${id}#1\0`, stored(templates.end, { log_id: logId(id, 1), timestamp: settledAt }))
  }

  return {
    run: (count, inFlight) => {
      let left = count
      const flow = async () => {
        while (left-- > 0) await runOne()
      }
      return Promise.all(Array.from({ length: inFlight }, flow))
    },
    end: async () => {
      await root.close()
      rmSync(folder, { recursive: true })
    },
  }
}

const present = Buffer.alloc(1)

const encodedBytes = (root: ReturnType<typeof open>, row: Row): number => {
  const scratch = root.openDB('scratch', { encoding: 'msgpack' }) as unknown as {
    encoder: { encode(row: Row): Buffer }
  }
  return scratch.encoder.encode(row).length
}
