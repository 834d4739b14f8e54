import fc from 'fast-check'
import { expect, test } from 'vitest'
import { applyAction } from '../../src/tables/condition.ts'
import type { Action, Row, Write } from '../../src/tables/port.ts'
import { coalesce, mergeKey } from '../../src/write-behind/coalesce.ts'
import { contractSchemas } from '../contract/tables.ts'

const [schema] = contractSchemas
if (!schema) throw new Error('no schema')
const names = fc.constantFrom('a', 'b', 'c')
/** Updates as one caller would write them: no attribute twice, and only counters are added to. */
const update = fc
  .array(fc.tuple(names, fc.constantFrom('set', 'add', 'remove'), fc.integer({ min: -5, max: 5 })), { maxLength: 3 })
  .map((parts): Write => {
    const unique = new Map(parts.map(([name, verb, n]) => [name, { verb, n }]))
    const of = (verb: string) => [...unique].filter(([, part]) => part.verb === verb)
    const action: Action = {
      kind: 'update',
      table: 'things',
      key: ['x'],
      set: Object.fromEntries(of('set').map(([name, { n }]) => [name, n])),
      add: Object.fromEntries(of('add').map(([name, { n }]) => [name, n])),
      remove: of('remove').map(([name]) => name),
    }
    return { actions: [action], merge: true }
  })
const rows = fc.option(
  fc.dictionary(names, fc.integer({ min: -5, max: 5 })).map((row): Row => ({ ...row, thing_id: 'x' })),
  { nil: undefined },
)
const apply = (write: Write, row: Row | undefined) => applyAction(schema, write.actions[0] as Action, row)

test('one write in the place of several leaves every row as the several would', () => {
  fc.assert(
    fc.property(rows, fc.array(update, { minLength: 1, maxLength: 6 }), (row, writes) => {
      const oneByOne = writes.reduce((at, write) => apply(write, at), row)
      const [first, ...rest] = writes as [Write, ...Write[]]
      expect(apply(rest.reduce(coalesce, first), row)).toEqual(oneByOne)
    }),
    { numRuns: 2_000 },
  )
})

test('only writes that say so, on the same row, have a key in common', () => {
  const of = (id: string): Write => ({
    actions: [{ kind: 'update', table: 'things', key: [id], add: { n: 1 } }],
    merge: true,
  })
  expect(mergeKey(of('a'))).toBe(mergeKey(of('a')))
  expect(mergeKey(of('a'))).not.toBe(mergeKey(of('b')))
  const { merge: _, ...unmarked } = of('a')
  expect(mergeKey(unmarked)).toBeUndefined()
})
