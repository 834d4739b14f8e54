import type { JobOptions } from '../config/sections/jobs.ts'
import { assert } from '../kernel/assert.ts'
import { type Clock, sleep } from '../kernel/clock.ts'
import { type Fault, isFault } from '../kernel/fault.ts'
import type { Ids } from '../kernel/ids.ts'
import type { Random } from '../kernel/random.ts'
import { delayAfter, type RetryPolicy } from '../kernel/retry.ts'
import type { Outgoing, Queue } from '../queues/port.ts'
import type { TableFault } from '../tables/faults.ts'
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

/** What the storage decided about one write. Throws the fault that kept it from being decided. */
export const decide = (context: StoreContext, write: Write): Promise<Decided> =>
  // Every verb passes here, so the usual case is one promise.
  context.tables.commit([write]).then(([verdict]) => {
    if (!verdict) assert(false, 'a write without a verdict')
    return verdict.kind === 'failed' ? decideAgain(context, write, verdict.fault) : verdict
  })

const decideAgain = async (context: StoreContext, write: Write, first: TableFault): Promise<Decided> => {
  let fault = first
  for (let failures = 1; ; failures++) {
    const delay = delayIfUnknown(context, fault, failures)
    if (delay === undefined) throw asStoreFault(fault)
    await sleep(context.clock, delay)
    const [verdict] = await context.tables.commit([write])
    if (!verdict) assert(false, 'a write without a verdict')
    if (verdict.kind !== 'failed') return verdict
    fault = verdict.fault
  }
}

/** As `decide` for each of several writes, which travel together; a fault in the place of each that was not decided. */
export const decideAll = async (
  context: StoreContext,
  writes: readonly Write[],
): Promise<readonly (Decided | Fault)[]> => {
  if (writes.length === 0) return []
  const verdicts = await context.tables.commit(writes)
  if (verdicts.every(isDecided)) return verdicts
  return Promise.all(verdicts.map((verdict, index) => settled(context, writes[index] as Write, verdict)))
}

const isDecided = (verdict: Verdict): verdict is Decided => verdict.kind !== 'failed'

/** Those whose outcome is unknown go on alone: by then they have no company to wait for. */
const settled = (context: StoreContext, write: Write, verdict: Verdict): Decided | Fault | Promise<Decided | Fault> => {
  if (verdict.kind !== 'failed') return verdict
  const delay = delayIfUnknown(context, verdict.fault, 1)
  if (delay === undefined) return asStoreFault(verdict.fault)
  const fault = (error: unknown): Fault => {
    if (isFault(error)) return error
    throw error
  }
  return sleep(context.clock, delay).then(() => decide(context, write).catch(fault))
}

const delayIfUnknown = (context: StoreContext, fault: TableFault, failures: number): number | undefined =>
  fault.outcome === 'unknown' ? delayAfter(unknownOutcome, failures, context.random.next()) : undefined

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
  try {
    return await look()
  } catch (error) {
    return lookAgain(context, look, error)
  }
}

const lookAgain = async <T>(context: StoreContext, look: () => Promise<T>, first: unknown): Promise<T> => {
  let error = first
  for (let failures = 1; ; failures++) {
    if (!isFault(error)) throw error
    const delay = error.retry === 'later' ? delayAfter(unknownOutcome, failures, context.random.next()) : undefined
    if (delay === undefined) throw asStoreFault(error)
    await sleep(context.clock, delay)
    try {
      return await look()
    } catch (next) {
      error = next
    }
  }
}

/** The job row as it stands, unless its retention has passed. */
export const readJobRow = (context: StoreContext, jobId: string): Promise<Row | undefined> => {
  const look = () => context.tables.get(jobsTable.name, jobKey(jobId))
  const ifFresh = (row: Row | undefined) => (row && !isExpired(row, context.clock.now()) ? row : undefined)
  return look().then(ifFresh, (error: unknown) => lookAgain(context, look, error).then(ifFresh))
}

/** Sends what could not travel within a transaction. What is not sent now, the sweeper sends: nothing throws. */
export const sendAfter = (context: StoreContext, outgoing: readonly Outgoing[]): Promise<void> | undefined =>
  context.queue.within || outgoing.length === 0 ? undefined : send(context, outgoing)

const send = async (context: StoreContext, outgoing: readonly Outgoing[]): Promise<void> => {
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
