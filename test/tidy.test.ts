import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { loadCatalogues } from '../scripts/reference.ts'
import { importsOf, importViolations } from './support/import-rule.ts'
import * as rules from './support/source-rules.ts'

const checkout = join(import.meta.dirname, '..')
const read = (path: string): string => readFileSync(join(checkout, path), 'utf8')

const filesBelow = (folder: string): readonly rules.SourceFile[] =>
  readdirSync(join(checkout, folder), { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.ts'))
    .sort()
    .map((file) => `${folder}/${file.replaceAll('\\', '/')}`)
    .map((path) => ({ path, text: read(path) }))

const src = filesBelow('src')
const machines = filesBelow('machines')
const tests = filesBelow('test')
const all = [...src, ...machines, ...tests, ...filesBelow('scripts')]

const violations = (rule: rules.SourceRule, files: readonly rules.SourceFile[]) => files.flatMap((file) => rule(file))

describe('layers', () => {
  test('imports point down, and vendors are imported only at the bottom', () => {
    const found = [...src, ...machines].flatMap(({ path, text }) => importViolations(path, text))
    expect(found).toEqual([])
  })

  test.each([
    ['src/jobs/store.ts', `import { open } from '../tables/dynamodb/open.ts'`],
    ['src/jobs/store.ts', `import { Client } from '@aws-sdk/client-dynamodb'`],
    ['src/jobs/store.ts', `import { loadOptions } from '../config/load.ts'`],
    ['src/jobs/store.ts', `import { options } from '../config/sections/write-behind.ts'`],
    ['src/jobs/store.ts', `const { start } = await import('../runtime.ts')`],
    ['src/jobs/store.ts', `import {\n  a,\n  type B,\n} from '../worker/worker.ts'`],
    ['src/jobs/store.ts', `import { setTimeout } from 'node:timers/promises'`],
    ['src/batch/batcher.ts', `export * from '../tables/port.ts'`],
    ['src/queues/local/sorted.ts', `import type { Row } from '../../tables/port.ts'`],
    ['src/tables/lmdb/open.ts', `import { open } from '../dynamodb/open.ts'`],
    ['src/tables/dynamodb.ts', `import { open } from './lmdb.ts'`],
    ['src/tables/port.ts', `import { assert } from '../kernel/assert.ts'`],
    ['src/sim/world.ts', `import { openLmdb } from '../tables/lmdb/open.ts'`],
    ['src/kernel/clock.ts', `import type { Job } from '../jobs/job.ts'`],
    ['machines/job.ts', `import { type Job } from '../src/jobs/job.ts'`],
    ['machines/job.ts', `import { readFileSync } from 'node:fs'`],
    ['src/utils/text.ts', ''],
  ])('the rule refuses in %s: %s', (path, text) => {
    expect(importViolations(path, text)).toHaveLength(1)
  })

  test.each([
    ['src/jobs/store.ts', `import type { JobOptions } from '../config/sections/jobs.ts'`],
    ['src/jobs/keys.ts', `import { logKey } from '../log/keys.ts'`],
    ['src/queues/embedded.ts', `import type { Tables } from '../tables/port.ts'`],
    ['src/tables/lmdb/open.ts', `import { open } from 'lmdb'`],
    ['src/tables/dynamodb.ts', `import { call } from './dynamodb/call.ts'`],
    ['src/client/client.ts', `import { createClient } from '@connectrpc/connect/protocol'`],
    ['src/cli/wire.ts', `import { createRuntime } from '../runtime.ts'`],
    ['machines/job.ts', `import type { Job } from '../src/jobs/job.ts'`],
  ])('the rule allows in %s: %s', (path, text) => {
    expect(importViolations(path, text)).toEqual([])
  })

  test('statements over several lines, exports and calls are all read, and comments are not', () => {
    const text = [
      `import 'a'`,
      `import type { B } from 'b'`,
      `import c, {\n  d,\n} from "c"`,
      `export { e } from 'e'`,
      `export type * from 'f'`,
      `const g = await import('g')`,
      `// import h from 'h'`,
      ` * import i from 'i'`,
      `export const from = { j: 1 }`,
    ].join('\n')
    const read = importsOf(text).map(({ module, typeOnly }) => `${module}${typeOnly ? ' type' : ''}`)
    expect(read.sort()).toEqual(['a', 'b type', 'c', 'e', 'f type', 'g'])
  })
})

describe('source', () => {
  test.each([
    ['no file of src has more than 300 lines', rules.isShort, src],
    ['src throws faults and assertions only', rules.throwsFaultsOnly, src],
    ['src leaves the process to cli', rules.leavesProcessAlone, [...src, ...machines]],
    ['every promise for later has an issue number', rules.numbersItsPromises, all],
    ['no test is left out', rules.runsEveryTest, tests],
    ['exports have names', rules.exportsByName, all],
  ] as const)('%s', (_, rule, files) => {
    expect(violations(rule, files)).toEqual([])
  })

  const later = ['TO', 'DO'].join('')
  test.each([
    ['isShort', rules.isShort, 'src/a.ts', '\n'.repeat(300).concat('a')],
    ['throwsFaultsOnly', rules.throwsFaultsOnly, 'src/a.ts', `if (a) throw new Error('a')`],
    ['leavesProcessAlone', rules.leavesProcessAlone, 'src/a.ts', `const a = \`\${process.env}\``],
    ['leavesProcessAlone', rules.leavesProcessAlone, 'src/tables/lmdb/host.ts', 'process.kill(process.pid, 9)'],
    ['numbersItsPromises', rules.numbersItsPromises, 'src/a.ts', `// ${later}: later`],
    ['runsEveryTest', rules.runsEveryTest, 'test/a.ts', `test.${'skip'}('a', b)`],
    ['exportsByName', rules.exportsByName, 'src/a.ts', 'export default a'],
  ] as const)('%s can fail', (_, rule, path, text) => {
    expect(rule({ path, text })).toHaveLength(1)
  })

  test.each([
    ['isShort', rules.isShort, 'src/a.ts', 'a\n'.repeat(300)],
    ['throwsFaultsOnly', rules.throwsFaultsOnly, 'src/a.ts', `// throw new Error\nthrow new Busy('throw new Error')`],
    ['throwsFaultsOnly', rules.throwsFaultsOnly, 'src/sim/world.ts', `throw new Error('a')`],
    ['leavesProcessAlone', rules.leavesProcessAlone, 'src/a.ts', `child.process.kill() // process.exit`],
    ['leavesProcessAlone', rules.leavesProcessAlone, 'src/tables/lmdb/host.ts', 'process.pid, process.kill(pid, 0)'],
    ['leavesProcessAlone', rules.leavesProcessAlone, 'src/cli/main.ts', 'process.exit()'],
    ['numbersItsPromises', rules.numbersItsPromises, 'src/a.ts', `// ${later}(#12): later`],
    ['exportsByName', rules.exportsByName, 'src/a.ts', `export const a = 'export default'`],
  ] as const)('%s can pass', (_, rule, path, text) => {
    expect(rule({ path, text })).toEqual([])
  })
})

describe('faults', () => {
  test('every code has one class, one entry in a catalogue and a place in docs/faults.md', async () => {
    const classes = src.flatMap(({ text }) => rules.faultCodesOf(text))
    const catalogues = (await loadCatalogues(checkout)).flatMap(({ entries }) => Object.keys(entries))
    expect(classes.length).toBeGreaterThan(0)
    expect(rules.faultViolations(classes, catalogues, read('docs/faults.md'))).toEqual([])
  })

  test('the rule can fail', () => {
    const text = `class A { readonly code = 'A' }\nclass B { override readonly code: string = 'B' }\n// readonly code = 'C'`
    expect(rules.faultCodesOf(text)).toEqual(['A', 'B'])
    expect(rules.faultViolations(['A', 'B', 'B'], ['A', 'C', 'C'], '### A\n')).toEqual([
      'B is the code of two classes',
      'C is in the catalogues twice',
      'B is in no catalogue',
      'B is in no catalogue',
      'C is the code of no class',
      'C is the code of no class',
      'B is not in docs/faults.md',
      'B is not in docs/faults.md',
    ])
  })
})

test('the lock file names no download address', () => {
  expect(rules.lockViolations(read('package-lock.json'))).toEqual([])
  expect(rules.lockViolations('{ "resolved": "somewhere" }')).toHaveLength(1)
})
