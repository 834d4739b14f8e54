// Runs test/real against real servers: fetches them, starts them on loopback, runs vitest, stops them. Extra arguments go
// to vitest. Ends with vitest's code, or with 1 when a server is missing.

import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { dynamodb } from './real/dynamodb.ts'
import { elasticmq } from './real/elasticmq.ts'
import { checkout } from './real/folders.ts'
import { resolveJars } from './real/jars.ts'
import { findJava, Stopped } from './real/java.ts'
import { type Server, type ServerKind, startServer } from './real/server.ts'

const kinds: readonly ServerKind[] = [dynamodb, elasticmq]
const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

const main = async (): Promise<number> => {
  const interrupted = new AbortController()
  for (const signal of signals) process.on(signal, () => interrupted.abort(signal))

  const java = findJava()
  const jars = kinds.map((kind) => timedSync(`fetch ${kind.name}`, () => resolveJars(kind.name)))
  const starting = kinds.map((kind, at) =>
    timed(`start ${kind.name}`, () => startServer(kind, { java, jars: jars[at] ?? '' }, interrupted.signal)),
  )
  const started = await Promise.allSettled(starting)
  const servers = started.flatMap((outcome) => (outcome.status === 'fulfilled' ? [outcome.value] : []))
  try {
    if (interrupted.signal.aborted) throw new Stopped(`Stopped by ${interrupted.signal.reason}.`)
    for (const outcome of started) if (outcome.status === 'rejected') throw outcome.reason
    const code = await timed('tests', () => runTests(servers, interrupted.signal))
    if (code !== 0) for (const { logPath } of servers) console.error(`The server's log is ${logPath}`)
    return code
  } finally {
    await timed('stop', () => Promise.all(servers.map((server) => server.stop())))
  }
}

const runTests = async (servers: readonly Server[], interrupted: AbortSignal): Promise<number> => {
  const addresses = kinds.map((kind, at) => [kind.variable, servers[at]?.address])
  const vitest: ChildProcess = spawn(
    process.execPath,
    [
      join(checkout, 'node_modules', 'vitest', 'vitest.mjs'),
      ...['run', '--config', 'vitest.real.config.ts'],
      ...process.argv.slice(2),
    ],
    { cwd: checkout, stdio: 'inherit', env: { ...process.env, ...Object.fromEntries(addresses) } },
  )
  interrupted.addEventListener('abort', () => vitest.kill('SIGTERM'))
  const [code] = await once(vitest, 'exit')
  return typeof code === 'number' ? code : 1
}

const timed = async <Result>(step: string, work: () => Promise<Result>): Promise<Result> => {
  const begun = performance.now()
  const result = await work()
  report(step, begun)
  return result
}

const timedSync = <Result>(step: string, work: () => Result): Result => {
  const begun = performance.now()
  const result = work()
  report(step, begun)
  return result
}

const report = (step: string, begun: number): void =>
  console.log(`${step}: ${((performance.now() - begun) / 1_000).toFixed(1)} s`)

try {
  process.exitCode = await main()
} catch (error) {
  console.error(error instanceof Stopped ? error.message : error)
  process.exitCode = 1
}
