// Output of real programs, made on the spot: the compiler telling how it finds every module of this project, the package manager
// telling what is installed, and our own runtime logging each of its events as a line of JSON.

import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { createLogger, logEvents } from '../../src/telemetry/logger.ts'
import { checkout } from '../real/folders.ts'
import { createEnds, startRig } from './rig.ts'
import type { SampleLog } from './sample-logs.ts'

const linesEach = 10_000

export const realLogs = async (): Promise<readonly SampleLog[]> => {
  const bin = join(checkout, 'node_modules', '.bin')
  return [
    said('tsc --traceResolution', join(bin, 'tsc'), ['-p', 'tsconfig.json', '--noEmit', '--traceResolution']),
    said('npm query', 'npm', ['query', '*']),
    { name: 'our own runtime, as JSON', lines: firstLines(await ownLog()) },
  ].filter(({ lines }) => lines.length === linesEach)
}

const said = (name: string, program: string, given: readonly string[]): SampleLog => {
  const { stdout } = spawnSync(program, given, { cwd: checkout, encoding: 'utf8', maxBuffer: 512 * 1_024 * 1_024 })
  return { name, lines: firstLines(stdout ?? '') }
}

const firstLines = (text: string): readonly string[] =>
  text
    .split('\n')
    .slice(0, linesEach)
    .map((line) => `${line}\n`)

/** Jobs that do nothing, with every event logged. */
const ownLog = async (): Promise<string> => {
  const written: Buffer[] = []
  const sink = new PassThrough()
  sink.on('data', (bytes: Buffer) => void written.push(bytes))
  const ends = createEnds()
  const log = logEvents(createLogger({ level: 'trace' }, sink))
  const rig = await startRig(
    { worker: { slots: 32 } },
    {
      handlers: { noop: () => undefined },
      emit: (event) => {
        log(event)
        ends.emit(event)
      },
    },
  )
  const request = { queue: 'default', params: { kind: 'handler', name: 'noop', input: {} } } as const
  for (let round = 0; round < 160; round++) {
    const jobs = await Promise.all(Array.from({ length: 32 }, () => rig.runtime.enqueue(request)))
    await Promise.all(jobs.map(({ jobId }) => ends.of(jobId)))
  }
  await rig.end()
  return Buffer.concat(written).toString()
}
