// npm run bench [-- <name>…] [-- --write] [-- --full]: runs the benchmarks, prints their table, and with --write puts it into
// docs/benchmarks.md. Ends with 1 if a target was missed. Every ratio compares two things measured in the same run.

import { writeFileSync } from 'node:fs'
import { cpus } from 'node:os'
import { benchBatcher } from './batcher.ts'
import { benchCommands } from './commands.ts'
import { benchHandlers } from './handlers.ts'
import { benchLatency } from './latency.ts'
import { benchLog } from './log.ts'
import { benchMemory } from './memory.ts'
import { benchReplay } from './replay.ts'
import { formatRow, type Row, table } from './row.ts'
import { benchStart } from './start.ts'
import { benchStore } from './store.ts'
import { benchUnits } from './units.ts'
import { benchWorkers } from './workers.ts'

const benches: Readonly<Record<string, { title: string; run: (given: readonly string[]) => Promise<readonly Row[]> }>> =
  {
    batcher: { title: 'The batcher, per item', run: benchBatcher },
    store: { title: 'Jobs through the embedded store', run: benchStore },
    workers: { title: 'Fifty workers finishing tasks of one parent', run: benchWorkers },
    handlers: { title: 'Handlers that do nothing, end to end', run: benchHandlers },
    commands: { title: 'Short programs as jobs', run: benchCommands },
    log: { title: 'Output: from a program to durable and to a follower in another process', run: benchLog },
    latency: { title: 'A line, from printed to seen', run: benchLatency },
    units: { title: 'What ten thousand lines cost in DynamoDB', run: benchUnits },
    replay: { title: 'Reading a log from a line on', run: benchReplay },
    memory: { title: 'Memory while a job prints much', run: benchMemory },
    start: { title: 'Starting', run: benchStart },
  }

const given = process.argv.slice(2)
const chosen = given.filter((name) => !name.startsWith('--'))
const unknown = chosen.filter((name) => !(name in benches))
if (unknown.length > 0) {
  console.error(`There is no benchmark '${unknown[0]}'; there are ${Object.keys(benches).join(', ')}.`)
  process.exit(1)
}

if (given.includes('--write') && chosen.length > 0) {
  console.error('The page holds all benchmarks: with --write, name none.')
  process.exit(1)
}

const sections: { title: string; rows: readonly Row[] }[] = []
for (const [name, { title, run }] of Object.entries(benches)) {
  if (chosen.length > 0 && !chosen.includes(name)) continue
  console.log(title)
  const rows = await run(given)
  for (const row of rows) console.log(`  ${formatRow(row)}`)
  sections.push({ title, rows })
}

if (given.includes('--write')) {
  const machine = `Node ${process.versions.node} on ${cpus().length} × ${cpus()[0]?.model.trim() ?? 'unknown'}`
  const page = [
    '# Benchmarks',
    '<!-- Made by npm run bench -- --write. -->',
    `${machine}. Machines differ, so only ratios are promises; each compares two things measured in the same run.`,
    ...sections.flatMap(({ title, rows }) => [`## ${title}`, table(rows)]),
  ]
  writeFileSync('docs/benchmarks.md', `${page.join('\n\n')}\n`)
}
process.exitCode = sections.flatMap(({ rows }) => rows).some(({ ok }) => ok === false) ? 1 : 0
