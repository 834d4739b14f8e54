import { existsSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { createPlace, isAlive } from './support/place.ts'
import { startService } from './support/service.ts'

const shell = (script: string) => ['--', 'sh', '-c', script]

describe('several runs on one directory', () => {
  test('K05 the second gives its job to the first, with its own environment and directory', async () => {
    const place = createPlace()
    const gate = place.gate('gate')
    const first = place.start(['run', ...shell('echo first; read _ < gate; echo end')])
    await first.stdout.until(/first/)
    const cwd = join(place.folder, 'sub')
    mkdirSync(cwd)
    const second = await place.run(['run', ...shell('echo "$PPID $MINE"; pwd; echo no >&2; exit 5')], {
      cwd,
      env: { MINE: 'mine' },
    })
    expect(second.code).toBe(5)
    expect(second.stdout).toBe(`${first.pid} mine\n${cwd}\n`)
    expect(second.stderr).toMatch(/^no\nmillrace: job \S+ FAILED: exited with code 5\n$/)
    await gate.open()
    expect(await first.ended).toEqual({ code: 0, signal: null })
    expect(first.stdout.text()).toBe('first\nend\n')
  })

  test('the first finishes the job of the second before it goes, and says so', async () => {
    const place = createPlace()
    const [mine, theirs] = [place.gate('mine'), place.gate('theirs')]
    const first = place.start(['run', ...shell('echo first; read _ < mine')])
    await first.stdout.until(/first/)
    const second = place.start(['run', ...shell('echo second; read _ < theirs; echo done')])
    await second.stdout.until(/second/)
    await mine.open()
    await first.stderr.until(/1 job of others to finish/)
    await theirs.open()
    expect(await second.ended).toEqual({ code: 0, signal: null })
    expect(await first.ended).toEqual({ code: 0, signal: null })
    expect(second.stdout.text()).toBe('second\ndone\n')
  })

  test('D08 G09 the first is killed with -9: the second takes the directory and finishes as attempt 2', async () => {
    const place = createPlace()
    const first = place.start(['run', ...shell('echo $$; exec sleep 1000')])
    const [firstChild = ''] = await first.stdout.until(/^\d+\n/)
    const script = 'echo "$MILLRACE_ATTEMPT $$"; test "$MILLRACE_ATTEMPT" = 2 || exec sleep 1000'
    const second = place.start(['run', ...shell(script)])
    const [, secondChild = ''] = await second.stdout.until(/^1 (\d+)\n/)
    await first.kill()
    expect(await second.ended).toEqual({ code: 0, signal: null })
    expect(second.stdout.text()).toMatch(/^1 \d+\n2 \d+\n$/)
    expect(second.stderr.text()).toContain('whoever held the data directory is gone; going on without it')
    expect(second.stderr.text()).toContain('attempt 2 started')
    // Nothing of what the dead one had started is left: neither its own command nor the first attempt of ours.
    expect([firstChild, secondChild].map(Number).filter(isAlive)).toEqual([])
  })

  test('Ctrl-C cancels the job of the first and gives that of the second back, who finishes it', async () => {
    const place = createPlace()
    const first = place.start(['run', '--set', 'worker.drainGraceMs=0', ...shell('echo first; exec sleep 1000')])
    await first.stdout.until(/first/)
    const script = 'echo "attempt $MILLRACE_ATTEMPT"; test "$MILLRACE_ATTEMPT" = 2 || exec sleep 1000'
    const second = place.start(['run', ...shell(script)])
    await second.stdout.until(/attempt 1/)
    first.send('SIGINT')
    expect(await first.ended).toEqual({ code: 130, signal: null })
    expect(await second.ended).toEqual({ code: 0, signal: null })
    expect(second.stdout.text()).toBe('attempt 1\nattempt 2\n')
  })

  test('what an earlier holder left is named and left to `up`, which runs it', async () => {
    const place = createPlace()
    const left = await place.run(['submit', '--', 'touch', 'was-here'])
    expect(left).toMatchObject({ code: 0, stderr: 'millrace: stored; `millrace up` runs it\n' })
    const done = await place.run(['run', '--', 'echo', 'mine'])
    expect(done).toEqual({
      code: 0,
      stdout: 'mine\n',
      stderr: 'millrace: 1 earlier job waits here; `millrace up` runs it\n',
    })
    expect(existsSync(join(place.folder, 'was-here'))).toBe(false)
    const up = await startService(place, 'up')
    const seen = await place.run(['monitor', left.stdout.trim()])
    expect(seen.stderr).toContain('COMPLETED')
    expect(existsSync(join(place.folder, 'was-here'))).toBe(true)
    up.send('SIGTERM')
    expect(await up.ended).toEqual({ code: 0, signal: null })
  })
})
