import type { JobOptions } from '../config/sections/jobs.ts'
import { assert } from '../kernel/assert.ts'
import { type Clock, sleep } from '../kernel/clock.ts'
import { type Fault, isFault } from '../kernel/fault.ts'
import type { Ids } from '../kernel/ids.ts'
import type { Random } from '../kernel/random.ts'
import { delayAfter, type RetryPolicy } from '../kernel/retry.ts'
import type { Outgoing, Queue } from '../queues/port.ts'
import type { Row, Tables, Verdict, Write } from '../tables/port.ts'
import type { Emit } from '../telemetry/events.ts'
import { StoreBusy } from './faults.ts'
import { isExpired, jobKey, jobsTable } from './keys.ts'

/** What every verb of the store works with. */
export interface StoreContext {
  readonly tables: Tables
  readonly queue: Queue
  readonly clock: Clock
  readonly random: Random
  readonly ids: Ids
  readonly options: JobOptions
  readonly emit: Emit
}

export type Decided = Exclude<Verdict, { kind: 'failed' }>

/**
 * How often a write whose outcome is unknown is repeated. Every write of the store may be: one that had taken effect is
 * refused the second time with a row that shows it. Throttling is not repeated here; the adapter has done so already.
 */
const unknownOutcome: RetryPolicy = { attemptsMax: 4, baseMs: 100, capMs: 2_000 }

/** A decision for each write, or the fault that kept it from being decided. */
export const decideAll = async (
  context: StoreContext,
  writes: readonly Write[],
): Promise<readonly (Decided | Fault)[]> => {
  const decided: (Decided | Fault)[] = []
  let open = writes.map((_, index) => index)
  for (let failures = 1; open.length > 0; failures++) {
    const verdicts = await context.tables.commit(open.map((index) => writes[index] as Write))
    const unknown: number[] = []
    for (const [place, index] of open.entries()) {
      const verdict = verdicts[place]
      assert(verdict, 'a write without a verdict')
      if (verdict.kind !== 'failed') decided[index] = verdict
      else {
        decided[index] = asStoreFault(verdict.fault)
        if (verdict.fault.outcome === 'unknown') unknown.push(index)
      }
    }
    const delay = delayAfter(unknownOutcome, failures, context.random.next())
    if (unknown.length === 0 || delay === undefined) break
    await sleep(context.clock, delay)
    open = unknown
  }
  return decided
}

/** As `decideAll`, for one write; throws the fault. */
export const decide = async (context: StoreContext, write: Write): Promise<Decided> => {
  const [decided] = await decideAll(context, [write])
  assert(decided, 'a write without a decision')
  if (isFault(decided)) throw decided
  return decided
}

/** What the storage says, in the words of a caller of the store. */
const asStoreFault = (fault: Fault): Fault =>
  fault.retry === 'later' && fault.code !== 'TABLE_FULL'
    ? new StoreBusy(`the store cannot take this now: ${fault.message}`, {
        retryAfterMs: fault.retryAfterMs ?? 1_000,
        cause: fault,
      })
    : fault

/** A read that is repeated while the storage is out of reach. */
export const read = async <T>(context: StoreContext, look: () => Promise<T>): Promise<T> => {
  for (let failures = 1; ; failures++) {
    try {
      return await look()
    } catch (error) {
      if (!isFault(error)) throw error
      const delay = error.retry === 'later' ? delayAfter(unknownOutcome, failures, context.random.next()) : undefined
      if (delay === undefined) throw asStoreFault(error)
      await sleep(context.clock, delay)
    }
  }
}

/** The job row as it stands, unless its retention has passed. */
export const readJobRow = async (context: StoreContext, jobId: string): Promise<Row | undefined> => {
  const row = await read(context, () => context.tables.get(jobsTable.name, jobKey(jobId)))
  return row && !isExpired(row, context.clock.now()) ? row : undefined
}

/** Sends what could not travel within a transaction. What is not sent now, the sweeper sends: nothing throws. */
export const sendAfter = async (context: StoreContext, outgoing: readonly Outgoing[]): Promise<void> => {
  if (context.queue.within || outgoing.length === 0) return
  const unsent = (at: Outgoing, fault: Fault) =>
    context.emit({ name: 'message.unsent', jobId: at.message.jobId, queue: at.message.queue, code: fault.code })
  try {
    const faults = await context.queue.send(outgoing)
    for (const [index, fault] of faults.entries()) if (fault) unsent(outgoing[index] as Outgoing, fault)
  } catch (error) {
    if (!isFault(error)) throw error
    for (const at of outgoing) unsent(at, error)
  }
}
