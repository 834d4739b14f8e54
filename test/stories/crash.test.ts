import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { eventually } from './support/eventually.ts'
import { createPlace, isAlive, type Place } from './support/place.ts'
import { startService, startWorkers } from './support/service.ts'

const shell = (script: string) => ['--', 'sh', '-c', script]
/** The first attempt says who it is and hangs; the next one ends. */
const hangsOnce = 'echo "$MILLRACE_ATTEMPT $$"; test "$MILLRACE_ATTEMPT" != 1 || exec sleep 1000; echo done'
const shortLease = [
  ...['--set', 'jobs.execution.leaseMs=3000', '--set', 'jobs.execution.heartbeatMs=1000'],
  ...['--set', 'jobs.sweepIntervalMs=200', '--set', 'jobs.execution.graceMs=500'],
]

const show = async (place: Place, job: string) =>
  JSON.parse((await place.run(['show', '--json', job])).stdout) as Record<string, unknown>
const submit = async (place: Place, ...args: readonly string[]): Promise<string> =>
  (await place.run(['submit', ...args])).stdout.trim()

describe('a server that dies', () => {
  test('D08 K06 killed with -9 in mid job and started again: the orphan is killed, attempt 2 finishes, both logs are there', async () => {
    const place = createPlace()
    const up = await startService(place, 'up')
    const job = await submit(place, ...shell(hangsOnce))
    const live = place.start(['monitor', job])
    const [, pid = ''] = await live.stdout.until(/^1 (\d+)\n/)
    await up.kill()
    expect(isAlive(Number(pid))).toBe(true)

    const again = await startService(place, 'up')
    // The directory says for sure that its holder is dead: nobody has to wait for a lease.
    await eventually(async () => (await show(place, job))['state'] === 'COMPLETED')
    expect(isAlive(Number(pid))).toBe(false)
    expect(await show(place, job)).toMatchObject({ attempt: 2, lostAttempts: 1, failedAttempts: 0 })
    const first = await place.run(['monitor', '--attempt', '1', '--no-follow', '--json', job])
    const second = await place.run(['monitor', '--attempt', '2', job])
    expect(first.stdout.split('\n').slice(0, 2).join('\n')).toMatch(/PROCESS_START.*\n.*"text":"1 \d+\\n"/)
    expect(first.stdout).toContain('"complete":false')
    expect(second.stdout).toMatch(/^2 \d+\ndone\n$/)
    again.send('SIGTERM')
    expect(await again.ended).toEqual({ code: 0, signal: null })
    expect(place.programs()).toEqual([])
  })

  test('G09 who watches over the network goes on by itself when the server is back on its port', async () => {
    const place = createPlace()
    const up = await startService(place, 'up')
    const port = new URL(up.address).port
    const job = await submit(place, ...shell(hangsOnce))
    const live = place.start(['monitor', '--server', up.address, '--attempt', '1', job])
    await live.stdout.until(/^1 \d+\n/)
    await up.kill()
    const again = place.start(['up', '--port', port])
    await again.stderr.until(/ready/)
    expect(await live.ended).toEqual({ code: 0, signal: null })
    expect(live.stdout.text()).toMatch(/^1 \d+\n2 \d+\ndone\n$/)
    expect(live.stderr.text()).toContain('attempt 1 was lost with its worker')
    expect(live.stderr.text()).toContain(`job ${job} COMPLETED`)
  })
})

describe('a worker elsewhere', () => {
  test('C01 stopped past its lease and woken: it is refused, kills its child, and changes nothing', async () => {
    const place = createPlace()
    const server = await startService(place, 'server', shortLease)
    // With one slot it asks for nothing while it is busy, so that its next attempt is not given to a sleeper.
    const stopped = await startWorkers(place, server, ['--slots', '1'])
    const job = await submit(place, ...shell(hangsOnce))
    const live = place.start(['monitor', '--attempt', '1', job])
    const [, pid = ''] = await live.stdout.until(/^1 (\d+)\n/)
    stopped.send('SIGSTOP')
    const other = await startWorkers(place, server)
    expect(await live.ended).toEqual({ code: 0, signal: null })
    expect(live.stdout.text()).toMatch(/^1 \d+\n2 \d+\ndone\n$/)
    // Its worker sleeps, so nobody has told the child.
    expect(isAlive(Number(pid))).toBe(true)
    const before = await show(place, job)
    expect(before).toMatchObject({ state: 'COMPLETED', attempt: 2, lostAttempts: 1 })
    stopped.send('SIGCONT')
    await eventually(() => !isAlive(Number(pid)))
    for (const worker of [stopped, other]) worker.send('SIGTERM')
    expect(await stopped.ended).toEqual({ code: 0, signal: null })
    expect(await other.ended).toEqual({ code: 0, signal: null })
    expect(await show(place, job)).toEqual(before)
  })

  test('C11 killed with -9: another one finishes the job, and the server needs no restart', async () => {
    const place = createPlace()
    const server = await startService(place, 'server', shortLease)
    const dead = await startWorkers(place, server)
    const job = await submit(place, ...shell(hangsOnce))
    const live = place.start(['monitor', '--attempt', '1', job])
    await live.stdout.until(/^1 \d+\n/)
    await dead.kill()
    await startWorkers(place, server)
    expect(await live.ended).toEqual({ code: 0, signal: null })
    expect(await show(place, job)).toMatchObject({ state: 'COMPLETED', attempt: 2, lostAttempts: 1 })
  })
})

describe('a server that is told to stop', () => {
  test('L05 D11 lets what runs come to its end', async () => {
    const place = createPlace()
    const gate = place.gate('gate')
    const up = await startService(place, 'up')
    const following = place.start(['submit', '--follow', ...shell('echo begun; read _ < gate; echo over')])
    await following.stdout.until(/begun/)
    up.send('SIGTERM')
    await up.stderr.until(/ending what is under way/)
    await gate.open()
    expect(await following.ended).toEqual({ code: 0, signal: null })
    expect(following.stdout.text()).toBe('begun\nover\n')
    expect(await up.ended).toEqual({ code: 0, signal: null })
  })

  test('L05 D11 gives back what does not end in time, and the next server finishes it', async () => {
    const place = createPlace()
    const up = await startService(place, 'up', ['--set', 'worker.drainGraceMs=50'])
    const job = await submit(place, ...shell(hangsOnce))
    const live = place.start(['monitor', job])
    const [, pid = ''] = await live.stdout.until(/^1 (\d+)\n/)
    live.send('SIGINT')
    up.send('SIGTERM')
    expect(await up.ended).toEqual({ code: 0, signal: null })
    expect(isAlive(Number(pid))).toBe(false)
    // Nothing counts against it: neither failed nor lost.
    expect(await show(place, job)).toMatchObject({ state: 'SCHEDULED', attempt: 1, failedAttempts: 0, lostAttempts: 0 })
    await startService(place, 'up')
    const seen = await place.run(['monitor', '--attempt', '2', job])
    expect(seen.stdout).toMatch(/^2 \d+\ndone\n$/)
  })

  test('L05 told twice stops at once, kills what runs and gives it back', async () => {
    const place = createPlace()
    const up = await startService(place, 'up')
    const job = await submit(place, ...shell('trap "" TERM; echo "1 $$"; while :; do sleep 0.1; done'))
    const live = place.start(['monitor', job])
    const [, pid = ''] = await live.stdout.until(/^1 (\d+)\n/)
    up.send('SIGTERM')
    await up.stderr.until(/ending what is under way/)
    up.send('SIGTERM')
    expect(await up.ended).toEqual({ code: 143, signal: null })
    expect(isAlive(Number(pid))).toBe(false)
    expect(await show(place, job)).toMatchObject({ state: 'SCHEDULED', attempt: 1, lostAttempts: 0 })
    expect(place.programs()).toEqual([])
  })
})

describe('L02 code that breaks its promises', () => {
  test('a module of handlers that throws while it is loaded: one line, and no server', async () => {
    const place = createPlace()
    writeFileSync(join(place.folder, 'broken.mjs'), `throw new Error('no such luck')\n`)
    const done = await place.run(['up', '--port', '0', '--handlers', 'broken.mjs'])
    expect(done).toMatchObject({ code: 2, stdout: '' })
    expect(done.stderr).toMatch(/^millrace: [^\n]*broken\.mjs[^\n]*no such luck[^\n]*\n$/)
  })

  test.each([
    ['an exception that nobody catches', `setImmediate(() => { throw new Error('stray') })`],
    ['a promise that nobody looks at', `void Promise.reject(new Error('stray'))`],
  ])('%s ends the server with one line and a code; the job is another attempt for the next one', async (_, stray) => {
    const place = createPlace()
    const handlers = `export const stray = (ctx) => {
      if (ctx.attempt === 1) { ${stray} }
      return ctx.attempt === 1 ? new Promise(() => {}) : 'well'
    }\n`
    writeFileSync(join(place.folder, 'handlers.mjs'), handlers)
    const up = await startService(place, 'up', ['--handlers', 'handlers.mjs'])
    // The server may be gone before it can answer; then the same request reaches the next one.
    const asking = place.start(['submit', '--handler', 'stray'])
    expect(await up.ended).toEqual({ code: 125, signal: null })
    expect(up.stderr.text()).toMatch(/^millrace: internal error: Error: stray\.[^\n]*\n$/)
    await startService(place, 'up', ['--handlers', 'handlers.mjs'])
    expect(await asking.ended).toEqual({ code: 0, signal: null })
    const id = asking.stdout.text().trim()
    await eventually(async () => (await show(place, id))['state'] === 'COMPLETED')
    expect(await show(place, id)).toMatchObject({ attempt: 2, result: 'well' })
  })
})
