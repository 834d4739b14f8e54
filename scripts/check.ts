// The quick gate: format and lint, types, dead code, layers, generated files. Every step runs, whatever the others say;
// what a step prints is shown when it fails.

import { spawnSync } from 'node:child_process'
import { join } from 'node:path'

const checkout = join(import.meta.dirname, '..')
const stepMsMax = 120_000

interface Step {
  readonly name: string
  /** A program of node_modules with its arguments. */
  readonly command: readonly [string, ...string[]]
}

const steps: readonly Step[] = [
  { name: 'format and lint', command: ['biome', 'check', '.'] },
  { name: 'types', command: ['tsc', '--project', 'tsconfig.json'] },
  { name: 'dead code', command: ['knip', '--no-progress', '--no-config-hints'] },
  { name: 'layers', command: ['vitest', 'run', 'test/tidy.test.ts'] },
  { name: 'generated files', command: ['tsx', 'scripts/gen.ts', '--check'] },
]

interface Result {
  readonly name: string
  readonly passed: boolean
  readonly seconds: number
}

const run = ({ name, command: [program, ...given] }: Step): Result => {
  const begun = performance.now()
  const { error, status, stdout, stderr } = spawnSync(join(checkout, 'node_modules', '.bin', program), given, {
    cwd: checkout,
    encoding: 'utf8',
    maxBuffer: 64 * 1_024 * 1_024,
    timeout: stepMsMax,
  })
  const passed = status === 0
  if (!passed) console.log([`--- ${name}`, stdout, stderr, error?.message].filter(Boolean).join('\n').trimEnd())
  return { name, passed, seconds: (performance.now() - begun) / 1_000 }
}

const results = steps.map(run)
const failed = results.filter(({ passed }) => !passed)
for (const { name, passed, seconds } of results) {
  console.log(`${passed ? 'ok    ' : 'FAILED'} ${seconds.toFixed(1).padStart(5)} s  ${name}`)
}
console.log(failed.length === 0 ? 'check: all is well' : `check: ${failed.map(({ name }) => name).join(', ')} failed`)
process.exitCode = failed.length === 0 ? 0 : 1
