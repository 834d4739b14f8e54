// Commits. Turns a group of writes into few calls that keep the port's promises.
// I1  No transaction holds the writes of two callers: the refusal of one must not be that of another.
// I2  Writes on the same row are in different waves, and a wave begins when the one before it has ended.

import { assert } from '../../kernel/assert.ts'
import type { TableSchema, Verdict, Write } from '../port.ts'
import { createBatch, type Entry, isPlain } from './batch.ts'
import { limitOf } from './limits.ts'
import { actionId } from './row.ts'
import { createSingle } from './single.ts'
import type { Wire } from './wire.ts'

export type Commit = (writes: readonly Write[], until: number) => Promise<readonly Verdict[]>

export const createCommit = (wire: Wire): Commit => {
  const batch = createBatch(wire)
  const single = createSingle(wire)

  return async (writes, until) => {
    const verdicts: Verdict[] = []
    const entryOf = (index: number): Entry => ({
      write: writes[index] as Write,
      settle: (verdict) => {
        verdicts[index] = verdict
      },
    })
    for (const wave of wavesOf(wire.schemaOf, writes)) {
      const entries = wave.map(entryOf).filter((entry) => isWithinLimits(wire.schemaOf, entry))
      await Promise.all([
        batch(
          entries.filter(({ write }) => isPlain(write)),
          until,
        ),
        ...entries
          .filter(({ write }) => !isPlain(write))
          .map(async ({ write, settle }) => settle(await single(write, until))),
      ])
    }
    assert(
      writes.every((_, index) => verdicts[index]),
      'a write without a verdict',
    )
    return verdicts
  }
}

/** Indexes of the writes in the order in which they must run; those of one wave touch different rows (I2). */
const wavesOf = (schemaOf: (table: string) => TableSchema, writes: readonly Write[]): readonly number[][] => {
  const lastWave = new Map<string, number>()
  const waves: number[][] = []
  for (const [index, { actions }] of writes.entries()) {
    const rows = actions.map((action) => actionId(schemaOf(action.table), action))
    const wave = 1 + Math.max(...rows.map((row) => lastWave.get(row) ?? -1))
    for (const row of rows) lastWave.set(row, wave)
    const members = waves[wave]
    if (members) members.push(index)
    else waves[wave] = [index]
  }
  return waves
}

/** A write that passes a limit gets its verdict here and is not sent. */
const isWithinLimits = (schemaOf: (table: string) => TableSchema, { write, settle }: Entry): boolean => {
  const fault = limitOf(schemaOf, write)
  if (fault) settle({ kind: 'failed', fault })
  return fault === undefined
}
