// What test/stories/sizes.test.ts tells at a hundredth, in full size. Needs a few gigabytes in the temporary directory.

import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, test } from 'vitest'
import { createClient } from '../../src/client/connect.ts'
import { systemClock } from '../../src/kernel/clock.ts'
import { systemRandom } from '../../src/kernel/random.ts'
import { anonymousMegabytes, watchMemory } from '../stories/support/memory.ts'
import { createPlace, type Place } from '../stories/support/place.ts'
import { startService } from '../stories/support/service.ts'
import { bundledProgram } from '../support/bundle.ts'

const limitMs = 900_000

/** The hash of what a shell prints; nobody has to hold it in memory. */
const hashOf = async (place: Place, script: string): Promise<string> => {
  const env = { PATH: process.env['PATH'] ?? '', HOME: process.env['HOME'] ?? '', MILLRACE_DATA_DIR: place.dataDir }
  const { stdout } = await promisify(execFile)('sh', ['-c', `{ ${script}; } | sha256sum`], { cwd: place.folder, env })
  return stdout.trim()
}
const quoted = (words: readonly string[]): string => words.map((word) => `'${word.replaceAll("'", "'\\''")}'`).join(' ')
const millrace = (...args: readonly string[]): string => quoted([process.execPath, bundledProgram, ...args])

describe('output in full size', () => {
  test.each([
    ['E07 E08 2 GB of lines', 'seq -f "line %09.0f of a log that does not end soon" 44000000'],
    ['E03 one line of 100 MB', 'head -c 100000000 /dev/zero | tr "\\0" x'],
    [
      'E03 E04 100 MB of bytes that are no text',
      'openssl enc -aes-128-ctr -nosalt -pass pass:seed -in /dev/zero 2>/dev/null | head -c 100000000',
    ],
  ])(
    '%s: every byte is there, live and replayed, and the server stays under 200 MB above idle',
    async (_, script) => {
      const place = createPlace()
      const up = await startService(place, 'up')
      const idle = anonymousMegabytes(up.pid)
      const memory = watchMemory(up.pid)
      const live = await hashOf(
        place,
        millrace('submit', '--raw', '--follow', '--request-id', 'once', '--', 'sh', '-c', script),
      )
      expect(live).toBe(await hashOf(place, script))
      const { stdout } = await place.run(['list', '--json'])
      const { id } = JSON.parse(stdout) as { id: string }
      expect(await hashOf(place, millrace('monitor', '--raw', '--fast', id))).toBe(live)
      memory.stop()
      expect(memory.most() - idle).toBeLessThan(200)
    },
    limitMs,
  )
})

test('R0.27 a hundred jobs of a thousand lines at once: nothing lost, nothing out of order', async () => {
  const place = createPlace()
  const { address } = await startService(place, 'up', ['--slots', '100'])
  const token = readFileSync(join(place.dataDir, 'token'), 'utf8').trim()
  const client = createClient({ address, token, clock: systemClock, random: systemRandom })
  const script = 'for n in $(seq 1 1000); do echo "$0 $n"; done'
  const made = await client.enqueueMany(
    Array.from({ length: 100 }, (_, at) => ({
      queue: 'default',
      params: { kind: 'command' as const, argv: ['sh', '-c', script, `job${at}`] },
    })),
  )
  const outputOf = async (jobId: string): Promise<string> => {
    const pieces: Uint8Array[] = []
    for await (const entry of client.follow({ jobId }))
      if ('event' in entry && entry.event.kind === 'output') pieces.push(entry.event.output)
    return Buffer.concat(pieces).toString()
  }
  const outputs = await Promise.all(made.map((answer) => ('jobId' in answer ? outputOf(answer.jobId) : 'refused')))
  client.close()
  for (const [at, output] of outputs.entries())
    expect(output).toBe(Array.from({ length: 1_000 }, (_, n) => `job${at} ${n + 1}\n`).join(''))
}, 900_000)
