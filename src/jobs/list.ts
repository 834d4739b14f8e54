// Listing. The index is spread over shards, so a page is a merge of several; a position is a place in one total order (time, then
// id), so a cursor is that place and the page after it is the same whatever happened in between.

import { assert } from '../kernel/assert.ts'
import type { Row } from '../tables/port.ts'
import { checkWhole } from './check.ts'
import { read, type StoreContext } from './context.ts'
import { CursorRefused, QueueUnknown } from './faults.ts'
import type { Job } from './job.ts'
import { isExpired, jobsTable, listKey, listShard, listShards, stateOf, text } from './keys.ts'
import { readJob } from './read.ts'
import type { Signer } from './signer.ts'
import type { JobState } from './transitions.ts'

export interface ListRequest {
  /** All queues if absent. */
  readonly queue?: string
  readonly state?: JobState
  /** By the time of creation; both ends are included. */
  readonly from?: number
  readonly to?: number
  /** Oldest first; newest first is the default. */
  readonly ascending?: boolean
  readonly limit: number
  readonly cursor?: string
}

export interface JobPage {
  readonly jobs: readonly Job[]
  /** Absent at the end. A page can be short, even empty, and still have one: a filter found little in what was read. */
  readonly cursor?: string
}

const limitMax = 1_000
/** How many rounds over the shards one call may make before it answers with what it has. */
const roundsMax = 20

export const listJobs = async (context: StoreContext, signer: Signer, request: ListRequest): Promise<JobPage> => {
  checkWhole('limit', request.limit, 1, limitMax)
  const { queues } = context.options
  if (request.queue !== undefined && !queues.includes(request.queue)) throw new QueueUnknown(request.queue)
  const filters = JSON.stringify([request.queue, request.state, request.from, request.to, request.ascending === true])
  let position = request.cursor === undefined ? undefined : openCursor(signer, request.cursor, filters)
  const found: Row[] = []
  for (let round = 0; round < roundsMax && found.length < request.limit; round++) {
    const { rows, next } = await mergedRows(context, request, position, request.limit - found.length)
    for (const row of rows) if (isWanted(context, request, row)) found.push(row)
    position = next
    if (next === undefined) break
  }
  const jobs = await Promise.all(found.map((row) => readJob(context, row)))
  return position === undefined ? { jobs } : { jobs, cursor: signer.sign('cursor', [filters, position]) }
}

const openCursor = (signer: Signer, cursor: string, filters: string): string => {
  const [signedFilters, position] = signer.open('cursor', cursor) ?? []
  if (position === undefined || signedFilters !== filters) throw new CursorRefused()
  return position
}

const isWanted = (context: StoreContext, request: ListRequest, row: Row): boolean =>
  !isExpired(row, context.clock.now()) && (request.state === undefined || stateOf(row) === request.state)

/** The next rows of all shards in order, at most `limit`, and the position after the last of them. */
const mergedRows = async (
  context: StoreContext,
  request: ListRequest,
  position: string | undefined,
  limit: number,
): Promise<{ rows: readonly Row[]; next: string | undefined }> => {
  const queues = request.queue === undefined ? context.options.queues : [request.queue]
  const shards = queues.flatMap((queue) => Array.from({ length: listShards }, (_, n) => listShard(queue, n)))
  // Ids are spread evenly: each shard gives its share and a little more, and what was cut too short comes in the next round.
  const share = Math.ceil(limit / shards.length) + 2
  const pages = await Promise.all(shards.map((shard) => shardRows(context, request, shard, position, share)))
  const order = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0) * (request.ascending ? 1 : -1)
  // Beyond the end of a shard that has more, another row of that shard could come in between.
  const cuts = pages.flatMap(({ rows, more }) => (more ? [keyOf(rows.at(-1))] : [])).sort(order)
  const cut = cuts[0]
  const rows = pages
    .flatMap((page) => page.rows)
    .filter((row) => cut === undefined || order(keyOf(row), cut) <= 0)
    .sort((a, b) => order(keyOf(a), keyOf(b)))
  const taken = rows.slice(0, limit)
  const isEnd = cut === undefined && taken.length === rows.length
  return { rows: taken, next: isEnd ? undefined : keyOf(taken.at(-1)) }
}

const keyOf = (row: Row | undefined): string => {
  assert(row, 'a shard that has more gave nothing')
  return text(row, 'list_key')
}

/** The next rows of one shard after the position, which itself was given before and is left out. */
const shardRows = async (
  context: StoreContext,
  { from, to, ascending = false }: ListRequest,
  shard: string,
  position: string | undefined,
  limit: number,
): Promise<{ rows: readonly Row[]; more: boolean }> => {
  const lowest = from === undefined ? undefined : listKey(from)
  const highest = to === undefined ? undefined : `${listKey(to)}~`
  const low = ascending ? (position ?? lowest) : lowest
  const high = ascending ? highest : (position ?? highest)
  const range = {
    partition: shard,
    descending: !ascending,
    limit: limit + 1,
    ...(low === undefined ? {} : { from: low }),
    ...(high === undefined ? {} : { to: high }),
  }
  let after: string | undefined
  // The index may still name rows that are gone; a shard that has more must give at least one row, or say that it has none.
  do {
    const page = await read(context, () =>
      context.tables.lookup(jobsTable.name, 'listing', after === undefined ? range : { ...range, after }),
    )
    const rows = await read(context, () => context.tables.getMany(jobsTable.name, page.entries))
    const present = rows.filter((row): row is Row => row !== undefined && row['list_key'] !== position)
    if (present.length > 0) return { rows: present, more: page.next !== undefined }
    after = page.next
  } while (after !== undefined)
  return { rows: [], more: false }
}
