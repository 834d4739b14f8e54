import { expect, test } from 'vitest'
import { isAlive } from '../stories/support/place.ts'
import { startService } from '../stories/support/service.ts'
import { createAwsPlace } from './support/aws-place.ts'

const shell = (script: string) => ['--', 'sh', '-c', script]
const hangsOnce =
  'echo "$MILLRACE_ATTEMPT $$"; test "$MILLRACE_ATTEMPT" != 1 || exec sleep 1000; for n in $(seq 1 300); do echo "line $n"; done'
const jsonLines = (text: string): readonly Record<string, unknown>[] =>
  text
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line))

test('provision makes tables and queues once, and says what it would do', async () => {
  const place = createAwsPlace()
  const steps = async (...args: readonly string[]) => {
    const done = await place.run(['provision', '--json', ...args])
    expect(done).toMatchObject({ code: 0, stderr: '' })
    return jsonLines(done.stdout).map(({ resource, action }) => `${action} ${resource}`)
  }
  const names = [
    ...['jobs', 'job_events'].map((name) => `table ${place.tablePrefix}${name}`),
    ...['-high', '', '-low', '-dead'].map((part) => `queue ${place.queuePrefix}default${part}`),
  ]
  expect(await steps('--dry-run')).toEqual(names.map((name) => `create ${name}`))
  expect(await steps()).toEqual(names.map((name) => `create ${name}`))
  expect(await steps()).toEqual(names.map((name) => `keep ${name}`))
})

test('C11 G09 submit, run, follow elsewhere, kill the worker, second attempt, replay', async () => {
  const place = createAwsPlace()
  expect(await place.run(['provision'])).toMatchObject({ code: 0, stderr: '' })
  // Two processes over the same tables: this one has no workers, so that whoever follows here follows across processes.
  const watched = await startService(place, 'server')
  const working = await startService(place, 'up')
  const submitted = await place.run(['submit', '--server', watched.address, ...shell(hangsOnce)])
  const job = submitted.stdout.trim()
  const live = place.start(['monitor', '--server', watched.address, '--attempt', '1', job])
  const [, pid = ''] = await live.stdout.until(/^1 (\d+)\n/)
  await working.kill()
  // Nobody knows that it is dead: the lease has to pass, and then somebody else runs the job.
  const second = await startService(place, 'up')
  expect(await live.ended).toEqual({ code: 0, signal: null })
  const lines = Array.from({ length: 300 }, (_, n) => `line ${n + 1}`)
  expect(live.stdout.lines().slice(2)).toEqual(lines)
  expect(live.stderr.text()).toContain('attempt 1 was lost with its worker')
  expect(live.stderr.text()).toContain('attempt 2 started')
  expect(live.stderr.text()).toContain(`job ${job} COMPLETED`)
  const shown = jsonLines((await place.run(['show', '--json', '--server', second.address, job])).stdout)[0]
  expect(shown).toMatchObject({ state: 'COMPLETED', attempt: 2, lostAttempts: 1, failedAttempts: 0 })

  // Both logs can be replayed from either process, and from the tables alone when no server is there.
  for (const server of [['--server', watched.address], ['--server', second.address], []]) {
    const first = await place.run(['monitor', ...server, '--no-follow', '--json', '--attempt', '1', job])
    expect(jsonLines(first.stdout).slice(0, 2)).toMatchObject([
      { type: 'PROCESS_START', attempt: 1, sequence: 1 },
      { type: 'OUTPUT', attempt: 1, sequence: 2, text: `1 ${pid}\n` },
    ])
    const from = await place.run(['monitor', ...server, '--no-follow', '--attempt', '2', '--from', '203', job])
    expect(from.stdout).toBe(`${lines.slice(200).join('\n')}\n`)
  }
  for (const one of [watched, second]) one.send('SIGTERM')
  expect(await watched.ended).toEqual({ code: 0, signal: null })
  expect(await second.ended).toEqual({ code: 0, signal: null })
  expect(isAlive(Number(pid))).toBe(true)
})

test('C01 a worker that slept past its lease is refused, kills its child, and changes nothing', async () => {
  const place = createAwsPlace()
  await place.run(['provision'])
  const sleeping = await startService(place, 'up', ['--slots', '1'])
  const job = (await place.run(['submit', ...shell(hangsOnce)])).stdout.trim()
  const server = await startService(place, 'server')
  const live = place.start(['monitor', '--server', server.address, '--attempt', '1', job])
  const [, pid = ''] = await live.stdout.until(/^1 (\d+)\n/)
  sleeping.send('SIGSTOP')
  await startService(place, 'up')
  expect(await live.ended).toEqual({ code: 0, signal: null })
  expect(isAlive(Number(pid))).toBe(true)
  const before = await place.run(['show', '--json', job])
  expect(jsonLines(before.stdout)[0]).toMatchObject({ state: 'COMPLETED', attempt: 2 })
  sleeping.send('SIGCONT')
  await expect.poll(() => isAlive(Number(pid)), { timeout: 30_000 }).toBe(false)
  expect(await place.run(['show', '--json', job])).toEqual(before)
})
