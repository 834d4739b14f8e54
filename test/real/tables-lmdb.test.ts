import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { startChild } from '../tables/support/child.ts'
import { surviveKills } from '../tables/support/crash.ts'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'millrace-disk-'))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

/** A disk of its own for one process: it is gone with the process, and needs no rights that we do not have. */
const onDisk = (options: string, then = ''): readonly string[] => {
  const script = `mount -t tmpfs -o ${options} tmpfs "$0" && ${then} exec "$@"`
  return ['unshare', process.getuid?.() === 0 ? '-m' : '-Urm', 'sh', '-c', script, folder]
}
const lastLine = async (lines: AsyncIterableIterator<string>): Promise<string> => {
  let last = ''
  for await (const line of lines) last = line
  return last
}

test('K01 two hundred kills in the middle of writing lose nothing that was acknowledged', async () => {
  await surviveKills(200, 2)
}, 1_200_000)

test('K03 on a full disk writes are refused, the process lives, and writing goes on when there is room', async () => {
  const child = startChild('fill-disk.ts', [folder], onDisk('size=8m'))
  const report = await lastLine(child.lines)
  expect(await child.ended).toEqual({ code: 0, signal: null })
  expect(JSON.parse(report)).toEqual({
    refusals: ['TABLE_FULL'],
    readable: true,
    after: 'done',
    survived: 1,
    written: true,
  })
})

test('K07 a directory on a read-only file system is refused with its path', async () => {
  const path = join(folder, 'data')
  const readOnly = onDisk('size=1m', 'mkdir "$0/data" && mount -o remount,ro "$0" &&')
  const child = startChild('open-once.ts', [path], readOnly)
  expect(await lastLine(child.lines)).toMatch(
    new RegExp(`^DIRECTORY_UNUSABLE ${path} cannot be used: it cannot be written`),
  )
})
