import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { createSeededRandom } from '../../src/sim/seeded-random.ts'
import { createPlace, isAlive } from './support/place.ts'

const sha256 = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex')
const shell = (script: string) => ['--', 'sh', '-c', script]

describe('millrace run', () => {
  test('prints live what the command prints, each stream to its own, and leaves nothing behind', async () => {
    const place = createPlace()
    const gate = place.gate('gate')
    const run = place.start(['run', ...shell('echo out; echo err >&2; read _ < gate; echo more; echo worse >&2')])
    // Nobody opens the gate before both lines are here: they did not wait for the command's end.
    await Promise.all([run.stdout.until(/^out\n$/), run.stderr.until(/^err\n$/)])
    await gate.open()
    expect(await run.ended).toEqual({ code: 0, signal: null })
    expect(run.stdout.text()).toBe('out\nmore\n')
    expect(run.stderr.text()).toBe('err\nworse\n')
    expect(place.programs()).toEqual([])
  })

  test.each([
    ['D02 3 for exit code 3', shell('exit 3'), 3, 'exited with code 3'],
    ['D02 255 for exit code 255', shell('exit 255'), 255, 'exited with code 255'],
    ['D02 1 for `false`, which is FAILED', ['--', 'false'], 1, 'exited with code 1'],
    ['D02 128 and the signal for a command that a signal ended', shell('kill -KILL $$'), 137, 'SIGKILL'],
    ['D01 1 for a program that is not there', ['--', './no-such-program'], 1, 'ENOENT'],
    [
      '124 for a command that ran out of time',
      ['--timeout', '200ms', '--', 'sleep', '60'],
      124,
      'took longer than 200 ms',
    ],
  ])('exits with %s', async (_, args, code, why) => {
    const place = createPlace()
    const done = await place.run(['run', ...args])
    expect(done).toMatchObject({ code, stdout: '' })
    expect(done.stderr).toMatch(/^millrace: job [0-9a-f-]{36} FAILED: [^\n]+\n$/m)
    expect(done.stderr).toContain(why)
  })

  test('E04 with --raw every byte is as the command wrote it: zeros, invalid UTF-8, no newline at the end', async () => {
    const place = createPlace()
    const bytes = createSeededRandom(4).bytes(300_001)
    writeFileSync(join(place.folder, 'binary'), bytes)
    const run = place.start(['run', '--raw', ...shell('cat binary; tail -c 5000 binary >&2')])
    expect(await run.ended).toEqual({ code: 0, signal: null })
    expect(sha256(run.stdout.bytes())).toBe(sha256(bytes))
    expect(sha256(run.stderr.bytes())).toBe(sha256(bytes.subarray(-5_000)))
  })

  test('M09 without --raw escape sequences other than colours are taken out', async () => {
    const place = createPlace()
    const done = await place.run(['run', '--', 'printf', '\\033]52;c;AAAA\\007\\033[31mred\\033[0m \\033[2Jend\\n'])
    expect(done).toMatchObject({ code: 0, stdout: '\x1b[31mred\x1b[0m end\n' })
  })

  test('the command has the environment, the directory and the input of whoever ran it', async () => {
    const place = createPlace()
    const cwd = join(place.folder, 'sub')
    mkdirSync(cwd)
    const script = 'pwd; echo "$MINE $MORE $MILLRACE_ATTEMPT"; cat'
    const done = await place.run(['run', '--stdin', '--env', 'MORE=two', ...shell(script)], {
      cwd,
      env: { MINE: 'one' },
      input: 'from outside\n',
    })
    expect(done).toEqual({ code: 0, stdout: `${cwd}\none two 1\nfrom outside\n`, stderr: '' })
  })

  test('a retried command is told as two attempts, and the last one counts', async () => {
    const place = createPlace()
    const script = 'echo "attempt $MILLRACE_ATTEMPT"; test "$MILLRACE_ATTEMPT" = 2'
    const done = await place.run(['run', '--retries', '1', '--set', 'jobs.retry.backoffBaseMs=1', ...shell(script)])
    expect(done).toEqual({ code: 0, stdout: 'attempt 1\nattempt 2\n', stderr: 'millrace: attempt 2 started\n' })
  })

  test('JOB-10 Ctrl-C in the middle: the job is CANCELLED, its process is dead, the exit code is 130', async () => {
    const place = createPlace()
    const run = place.start(['run', ...shell('echo $$; exec sleep 1000')])
    const [pid = ''] = await run.stdout.until(/^\d+\n/)
    run.send('SIGINT')
    expect(await run.ended).toEqual({ code: 130, signal: null })
    expect(isAlive(Number(pid))).toBe(false)
    expect(run.stderr.text()).toContain('cancelling')
    const { stdout } = await place.run(['list', '--json'])
    expect(JSON.parse(stdout)).toMatchObject({ state: 'CANCELLED', attempt: 1 })
  })

  test('L05 a second Ctrl-C does not wait for a command that ignores the first, and leaves no process', async () => {
    const place = createPlace()
    const run = place.start(['run', ...shell('trap "" TERM; echo ready; while :; do sleep 1; done')])
    await run.stdout.until(/ready/)
    run.send('SIGINT')
    await run.stderr.until(/cancelling/)
    run.send('SIGINT')
    expect(await run.ended).toEqual({ code: 130, signal: null })
    expect(place.programs()).toEqual([])
  })

  test('whoever reads the output goes away: the command is stopped', async () => {
    const place = createPlace()
    const run = place.start(['run', ...shell('echo ready; while :; do echo more; done')])
    await run.stdout.until(/ready/)
    run.process.stdout?.destroy()
    expect(await run.ended).toMatchObject({ code: 141 })
    expect(place.programs()).toEqual([])
  })

  test('a build with make and a compiler prints the same bytes as without us', async () => {
    const place = createPlace()
    const files = {
      'main.c':
        '#include <stdio.h>\nint twice(int);\nint main(void) { int unused; printf("%d\\n", twice(21)); return 0; }\n',
      'twice.c': 'int twice(int n) { return n + n; }\n',
      Makefile:
        'CFLAGS = -Wall -Wextra\nanswer: main.o twice.o\n\t$(CC) -o $@ $^\ncheck: answer\n\t./answer\nclean:\n\trm -f *.o answer\n',
    }
    for (const [name, text] of Object.entries(files)) writeFileSync(join(place.folder, name), text)
    const env = { PATH: process.env['PATH'] ?? '', HOME: process.env['HOME'] ?? '', LANG: 'C.UTF-8' }
    const bare = (target: string) =>
      execFileSync('sh', ['-c', `make ${target} 2>&1`], { cwd: place.folder, env, encoding: 'utf8' })
    const expected = bare('check')
    expect(expected).toContain('unused')
    bare('clean')
    const done = await place.run(['run', '--raw', ...shell('make check 2>&1')])
    expect(done).toEqual({ code: 0, stdout: expected, stderr: '' })
  })
})
