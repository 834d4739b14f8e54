import { type Clock, sleep } from '../kernel/clock.ts'
import type { Random } from '../kernel/random.ts'
import { TableConflict, TableThrottled, TableUnavailable } from '../tables/faults.ts'
import type { Tables, Verdict, Write } from '../tables/port.ts'

/** What can go wrong on the way to a database. `lostReply` is the cruel one: it happened, and is reported lost. */
export const tableFaultKinds = [
  'slow',
  'throttled',
  'lostRequest',
  'lostReply',
  'partial',
  'conflict',
  'readFailed',
  'indexLag',
] as const
export type TableFaultKind = (typeof tableFaultKinds)[number]

export interface FaultyTables extends Tables {
  /** How often each kind has fired. */
  readonly fired: Readonly<Record<TableFaultKind, number>>
  /** Makes the next commit (or read, for the kinds of reads) go wrong in this way, whatever the rates say. */
  inject(kind: TableFaultKind): void
  /** From here on nothing goes wrong by itself. */
  heal(): void
}

export interface FaultRates extends Partial<Record<TableFaultKind, number>> {
  /** The longest a slow call takes. */
  readonly slowMs?: number
}

/** A decorator over any tables: faults drawn from a seed, within what a real service may do. */
export const createFaultyTables = (
  deps: { readonly clock: Clock; readonly random: Random },
  inner: Tables,
  given: FaultRates = {},
): FaultyTables => {
  const fired = Object.fromEntries(tableFaultKinds.map((kind) => [kind, 0])) as Record<TableFaultKind, number>
  const injected: TableFaultKind[] = []
  let rates = given

  const strikes = (kind: TableFaultKind): boolean => {
    const at = injected.indexOf(kind)
    if (at >= 0) injected.splice(at, 1)
    // A rate of zero draws nothing, so that a fault more or less shifts no other draw.
    else if (!(rates[kind] && deps.random.next() < rates[kind])) return false
    fired[kind] += 1
    return true
  }
  const pause = async () => {
    if (strikes('slow')) await sleep(deps.clock, Math.ceil(deps.random.next() * (rates.slowMs ?? 1_000)))
  }
  const reading = async <T>(look: () => Promise<T>): Promise<T> => {
    await pause()
    if (strikes('readFailed')) throw new TableUnavailable('the answer was lost', 'none')
    return look()
  }
  const lost = (): Verdict => ({ kind: 'failed', fault: new TableUnavailable('the answer was lost', 'unknown') })

  /** Some writes of a group are done, the others are sent back. */
  const half = async (writes: readonly Write[]): Promise<readonly Verdict[]> => {
    const passes = writes.map(() => deps.random.next() < 0.5)
    const done = await inner.commit(writes.filter((_, index) => passes[index]))
    let next = 0
    return passes.map((passed) =>
      passed ? (done[next++] as Verdict) : { kind: 'failed', fault: new TableThrottled('too many writes') },
    )
  }

  return {
    limits: inner.limits,
    get: (table, key) => reading(() => inner.get(table, key)),
    getMany: (table, keys) => reading(() => inner.getMany(table, keys)),
    query: (table, range) => reading(() => inner.query(table, range)),
    lookup: (table, index, range) =>
      reading(async () => {
        const page = await inner.lookup(table, index, range)
        return strikes('indexLag') ? { ...page, entries: page.entries.slice(0, -1) } : page
      }),
    commit: async (writes) => {
      await pause()
      const refused = (fault: () => TableThrottled | TableConflict): readonly Verdict[] =>
        writes.map(() => ({ kind: 'failed', fault: fault() }))
      if (strikes('throttled')) return refused(() => new TableThrottled('too many writes'))
      if (strikes('conflict')) return refused(() => new TableConflict('another transaction came first'))
      if (strikes('lostRequest')) return writes.map(lost)
      if (strikes('partial')) return half(writes)
      const verdicts = await inner.commit(writes)
      return strikes('lostReply') ? writes.map(lost) : verdicts
    },
    close: () => inner.close(),
    fired,
    inject: (kind) => injected.push(kind),
    heal: () => {
      rates = {}
    },
  }
}
