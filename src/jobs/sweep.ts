// The sweeper's work: messages that were lost, workers that were lost. Every process sweeps all shards; conditional writes make
// it harmless that several do.
// W1  A worker is lost only if this process has seen the same (attempt, renewals) for a whole lease on its own monotonic clock.
// W2  Nothing is decided by the index: it only says which rows to read.
// W3  One job that cannot be looked at does not keep the others from being looked at.

import { isFault } from '../kernel/fault.ts'
import type { Condition, Row } from '../tables/port.ts'
import { decide, read, type StoreContext } from './context.ts'
import { expire } from './expire.ts'
import type { Hold } from './job.ts'
import { count, dueShards, executionOf, jobKey, jobsTable, messageOf, number, stateOf, text } from './keys.ts'
import { heldBy } from './moves.ts'

export interface Swept {
  readonly resent: number
  readonly expired: number
  /** Jobs that could not be looked at this time. */
  readonly failed: number
}

interface Seen {
  readonly attempt: number
  readonly renewals: number
  /** Since when, on this process's monotonic clock. */
  readonly since: number
}

const pageSize = 100
const resendBaseMs = 15 * 60_000
const resendCapMs = 12 * 60 * 60_000

export interface Sweep {
  /** One round over all shards. */
  run(): Promise<Swept>
  /** What workers hold whose id begins so. */
  heldBy(prefix: string): Promise<readonly Hold[]>
  /** Expires at once what workers hold whose id begins so, because they are known to be dead. */
  expireWorkers(prefix: string): Promise<number>
}

export const createSweep = (context: StoreContext): Sweep => {
  let seen = new Map<string, Seen>()

  /** Looks at every row that is due by `dueBy`, and says what became of each. */
  const eachDue = async (dueBy: number | undefined, look: (row: Row) => Promise<keyof Swept | undefined>) => {
    const swept = { resent: 0, expired: 0, failed: 0 }
    for (let shard = 0; shard < dueShards; shard++) {
      let after: string | undefined
      do {
        const page = await duePage(context, shard, dueBy, after)
        for (const row of page.rows) {
          const became = await look(row).catch((error: unknown) => {
            if (isFault(error)) return 'failed' as const
            throw error
          })
          if (became) swept[became] += 1
        }
        after = page.next
      } while (after !== undefined)
    }
    return swept
  }

  return {
    run: async () => {
      const before = seen
      const now = new Map<string, Seen>()
      const swept = await eachDue(context.clock.now(), async (row) => {
        if (stateOf(row) === 'SCHEDULED') return (await resend(context, row)) ? 'resent' : undefined
        if (stateOf(row) !== 'RUNNING') return undefined
        return watch(context, row, before, now)
      })
      // Only what is still overdue is remembered, so the memory is bounded by the jobs that run.
      seen = now
      context.emit({ name: 'sweep.ended', ...swept })
      return swept
    },
    heldBy: async (prefix) => {
      const holds: Hold[] = []
      await eachDue(undefined, async (row) => {
        if (isHeldBy(row, prefix))
          holds.push({ jobId: text(row, 'job_id'), queue: text(row, 'queue'), attempt: number(row, 'attempt') })
        return undefined
      })
      return holds
    },
    expireWorkers: async (prefix) => {
      const swept = await eachDue(undefined, async (row) =>
        isHeldBy(row, prefix) && (await expire(context, row)) ? 'expired' : undefined,
      )
      return swept.expired
    },
  }
}

const isHeldBy = (row: Row, prefix: string): boolean => {
  const worker = row['worker_id']
  return stateOf(row) === 'RUNNING' && typeof worker === 'string' && worker.startsWith(prefix)
}

/** A page of rows that the index says are due, read strongly. */
const duePage = async (context: StoreContext, shard: number, dueBy: number | undefined, after: string | undefined) => {
  const { tables } = context
  const keys = await read(context, () =>
    tables.lookup(jobsTable.name, 'due', {
      partition: String(shard),
      limit: pageSize,
      ...(dueBy === undefined ? {} : { to: dueBy }),
      ...(after === undefined ? {} : { after }),
    }),
  )
  const rows = await read(context, () => tables.getMany(jobsTable.name, keys.entries))
  const due = rows.filter((row): row is Row => {
    const dueAt = row?.['due_at']
    return typeof dueAt === 'number' && (dueBy === undefined || dueAt <= dueBy)
  })
  return { rows: due, next: keys.next }
}

/** Sends the hint again, then looks again much later: a lost message is rare, a backlog is not. */
const resend = async (context: StoreContext, row: Row): Promise<boolean> => {
  const message = messageOf(row)
  const [fault] = await context.queue.send([{ message, notBefore: number(row, 'not_before') }])
  if (fault) throw fault
  context.emit({ name: 'message.resent', jobId: message.jobId, queue: message.queue })
  const pause = Math.min(resendCapMs, resendBaseMs * 2 ** Math.min(count(row, 'sends'), 10))
  await lookAgain(context, row, pause, {
    test: 'all',
    of: [
      { test: '=', attribute: 'state', value: 'SCHEDULED' },
      { test: '=', attribute: 'attempt', value: message.attempt },
    ],
  })
  return true
}

/** W1. A pair that moved since the last look is a sign of life. */
const watch = async (
  context: StoreContext,
  row: Row,
  before: ReadonlyMap<string, Seen>,
  now: Map<string, Seen>,
): Promise<'expired' | undefined> => {
  const jobId = text(row, 'job_id')
  const [attempt, renewals] = [number(row, 'attempt'), number(row, 'renewals')]
  const last = before.get(jobId)
  const monotonic = context.clock.monotonic()
  if (last && (last.attempt !== attempt || last.renewals !== renewals)) {
    await lookAgain(context, row, executionOf(row).leaseMs, heldBy(attempt))
    return undefined
  }
  const since = last?.since ?? monotonic
  if (monotonic - since >= executionOf(row).leaseMs && (await expire(context, row))) return 'expired'
  now.set(jobId, { attempt, renewals, since })
  return undefined
}

/** Moves the time of the next look. That the row changed meanwhile is as good: whoever changed it set the time. */
const lookAgain = (context: StoreContext, row: Row, inMs: number, condition: Condition) => {
  const scheduled = stateOf(row) === 'SCHEDULED'
  return decide(context, {
    actions: [
      {
        kind: 'update',
        table: jobsTable.name,
        key: jobKey(text(row, 'job_id')),
        set: { due_at: context.clock.now() + inMs },
        ...(scheduled ? { add: { sends: 1 } } : {}),
        if: condition,
        keep: true,
      },
    ],
  })
}
