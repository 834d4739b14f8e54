import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { eventTypes } from '../../src/log/event.ts'
import { createRuntime } from '../../src/runtime.ts'
import { createSeededRandom } from '../../src/sim/seeded-random.ts'
import { eventually } from './support/eventually.ts'
import { anonymousMegabytes, watchMemory } from './support/memory.ts'
import { createPlace, type Place } from './support/place.ts'
import { startService } from './support/service.ts'

const shell = (script: string) => ['--', 'sh', '-c', script]
const sha256 = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex')

/** Items of the current attempt as they lie in the data directory, once nobody holds it. */
const storedItems = async (place: Place, jobId: string) => {
  const runtime = await createRuntime({ embedded: { directory: place.dataDir } }, { work: 'none' })
  try {
    const items: string[] = []
    for await (const entry of runtime.followBatches({ jobId, noFollow: true })) {
      if ('item' in entry) items.push(`${entry.item.sequence}-${entry.item.endSequence} ${entry.item.type}`)
    }
    return items
  } finally {
    await runtime.stop()
  }
}

describe('much output', () => {
  test('E03 E04 E05 a line of 1 MB and 3 MB without any line at all come out as they went in', async () => {
    const place = createPlace()
    const line = Buffer.from('x'.repeat(1_000_000))
    const binary = createSeededRandom(3).bytes(3_000_000)
    writeFileSync(join(place.folder, 'input'), Buffer.concat([line, Buffer.from('\n'), binary]))
    await startService(place, 'up')
    const following = place.start(['submit', '--follow', '--raw', '--', 'cat', 'input'])
    expect(await following.ended).toEqual({ code: 0, signal: null })
    const expected = Buffer.concat([line, Buffer.from('\n'), binary])
    expect(following.stdout.bytes().length).toBe(expected.length)
    expect(sha256(following.stdout.bytes())).toBe(sha256(expected))
  })

  test('E07 E08 20 MB as fast as they can be written: nothing is lost, and the server stays small', async () => {
    const place = createPlace()
    const up = await startService(place, 'up')
    const idle = anonymousMegabytes(up.pid)
    const memory = watchMemory(up.pid)
    const following = place.start(['submit', '--follow', '--raw', ...shell('seq -f "line %07.0f of a log" 910000')])
    expect(await following.ended).toEqual({ code: 0, signal: null })
    memory.stop()
    const expected = execFileSync('seq', ['-f', 'line %07.0f of a log', '910000'], { maxBuffer: 64_000_000 })
    expect(expected.length).toBe(20_020_000)
    expect(sha256(following.stdout.bytes())).toBe(sha256(expected))
    expect(memory.most() - idle).toBeLessThan(200)
  })

  test('E07 beyond its limit output is cut with a marker that says how much, the head and the last 64 KiB kept', async () => {
    const place = createPlace()
    await startService(place, 'up', ['--set', 'jobs.execution.maxOutputBytes=10000'])
    const done = await place.run(['submit', '--follow', ...shell('seq 1 100000')])
    expect(done.code).toBe(0)
    expect(done.stdout.startsWith('1\n2\n3\n')).toBe(true)
    expect(done.stdout.endsWith('\n99999\n100000\n')).toBe(true)
    expect(Buffer.byteLength(done.stdout)).toBeLessThanOrEqual(10_000 + 65_536)
    const [, missing = ''] = done.stderr.match(/(\d+) bytes of stdout are missing here/) ?? []
    expect(Number(missing) + Buffer.byteLength(done.stdout)).toBe(588_895)
  })
})

describe('how output is stored', () => {
  test('R0.25 a hundred lines that nobody watches are four items: start, 2–51, 52–101, end', async () => {
    const place = createPlace()
    const up = await startService(place, 'up')
    const job = (await place.run(['submit', ...shell('seq 1 100')])).stdout.trim()
    await eventually(async () => (await place.run(['show', job])).stdout.includes('COMPLETED'))
    up.send('SIGTERM')
    await up.ended
    expect(await storedItems(place, job)).toEqual([
      `1-1 ${eventTypes.processStart}`,
      `2-51 ${eventTypes.outputBatch}`,
      `52-101 ${eventTypes.outputBatch}`,
      `102-102 ${eventTypes.processEnd}`,
    ])
  })

  test('R0.27 ten jobs of a thousand lines at once: nothing lost, nothing out of order', async () => {
    const place = createPlace()
    const up = await startService(place, 'up', ['--slots', '10'])
    const script = 'for n in $(seq 1 1000); do echo "$0 $n"; done'
    const jobs = Array.from({ length: 10 }, (_, at) => ['--', 'sh', '-c', script, `job${at}`])
    const followers = jobs.map((args) => place.start(['submit', '--follow', ...args]))
    for (const [at, follower] of followers.entries()) {
      expect(await follower.ended).toEqual({ code: 0, signal: null })
      expect(follower.stdout.lines()).toEqual(Array.from({ length: 1_000 }, (_, n) => `job${at} ${n + 1}`))
    }
    up.send('SIGTERM')
    expect(await up.ended).toEqual({ code: 0, signal: null })
  })
})
