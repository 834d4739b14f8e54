// Makes what the benchmarks measure, then runs them: the sources as plain modules, because nobody runs them through a compiler,
// and the command line as the bundle that people start. Arguments go to main.ts.

import { spawnSync } from 'node:child_process'
import { cpSync } from 'node:fs'
import { join } from 'node:path'

const checkout = join(import.meta.dirname, '..', '..')
const made = join(checkout, '.cache', 'bench')

const run = (program: string, given: readonly string[]): number =>
  spawnSync(program, given, { cwd: checkout, stdio: 'inherit' }).status ?? 1

const compiled = run(join(checkout, 'node_modules', '.bin', 'tsc'), ['-p', 'tsconfig.bench.json'])
if (compiled !== 0) process.exit(compiled)
// Generated code is JavaScript already and only has to stand beside the rest.
cpSync(join(checkout, 'api', 'gen'), join(made, 'api', 'gen'), { recursive: true })
const bundled = run(join(checkout, 'node_modules', '.bin', 'tsx'), ['scripts/build.ts', '--bundle'])
if (bundled !== 0) process.exit(bundled)
process.exit(run(process.execPath, [join(made, 'scripts', 'bench', 'main.js'), ...process.argv.slice(2)]))
