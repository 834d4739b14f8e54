import { chmodSync, mkdirSync, statSync, writeFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { createVirtualClock, settle, type VirtualClock } from '../../src/sim/virtual-clock.ts'
import { checkFormat, formatVersion } from '../../src/tables/lmdb/format.ts'
import { judge, putHeartbeat, readHolder } from '../../src/tables/lmdb/holder.ts'
import { systemHost } from '../../src/tables/lmdb/host.ts'
import { contractSchemas } from '../contract/tables.ts'
import { startChild } from './support/child.ts'
import { openAt, tempFolder } from './support/directory.ts'
import { meddle, plantHolder } from './support/planted.ts'

let folder: ReturnType<typeof tempFolder>
beforeEach(() => {
  folder = tempFolder()
})
afterEach(() => folder.remove())

const put = { kind: 'put', table: 'things', row: { thing_id: 'a', n: 1 } } as const
const filled = async () => {
  const tables = await openAt(folder.path)
  await tables.commit([{ actions: [put] }])
  await tables.close()
}

/** Lets real work go on and moves virtual time whenever something waits for it. */
const drive = async <T>(clock: VirtualClock, work: Promise<T>, atEachStep = () => {}): Promise<T> => {
  let ended = false
  const end = () => {
    ended = true
  }
  work.then(end, end)
  while (!ended) {
    await settle()
    if (!ended && clock.timers > 0) {
      atEachStep()
      clock.step()
    }
  }
  return work
}

describe('one holder', () => {
  test('K05 a second process is refused at once, by the name of the first and its host', async () => {
    const child = startChild('write-for-ever.ts', [folder.path])
    await child.lines.next()
    // A clock that never moves: whoever waited for anything would wait for ever.
    const second = openAt(folder.path, { clock: createVirtualClock() })
    await expect(second).rejects.toMatchObject({ code: 'DIRECTORY_HELD', holder: { pid: child.process.pid } })
    await expect(second).rejects.toThrow(new RegExp(`${child.process.pid} on ${hostname()}`))
    await child.kill()
    const tables = await openAt(folder.path)
    expect(tables.previous).toMatchObject({ died: 'proved' })
    await tables.close()
  })

  test('K05 the same process is refused too, and the first goes on undisturbed', async () => {
    const tables = await openAt(folder.path)
    await expect(openAt(folder.path)).rejects.toMatchObject({ code: 'DIRECTORY_HELD', holder: { pid: process.pid } })
    expect((await tables.commit([{ actions: [put] }]))[0]?.kind).toBe('done')
    await tables.close()
  })

  test('a holder that closed let go: the next one has no predecessor', async () => {
    await filled()
    const tables = await openAt(folder.path)
    expect(tables.previous).toBeUndefined()
    expect(await tables.get('things', ['a'])).toEqual(put.row)
    await tables.close()
  })

  test.each([
    ['its process id is used by a process that started at another time', { startTime: '1' }],
    ['the machine has started again since', { bootId: 'an earlier one' }],
    ['its process is gone', { pid: 4_194_305 }],
  ])('K06 a holder that crashed is succeeded at once when %s', async (_, over) => {
    await filled()
    const { nonce } = await plantHolder(folder.path, over)
    const tables = await openAt(folder.path, { clock: createVirtualClock() })
    expect(tables.previous).toEqual({ nonce, died: 'proved' })
    expect(tables.holderNonce).not.toBe(nonce)
    expect(await tables.get('things', ['a'])).toEqual(put.row)
    await tables.close()
  })

  test.each([
    ['on another host', { host: 'elsewhere' }],
    ['in another namespace', { pidNamespace: 'pid:[1]' }],
  ])('a holder %s is presumed dead after 30 seconds without a heartbeat, not before', async (_, over) => {
    await filled()
    const { nonce } = await plantHolder(folder.path, over)
    const clock = createVirtualClock()
    const tables = await drive(clock, openAt(folder.path, { clock }))
    expect(clock.monotonic()).toBeGreaterThanOrEqual(30_000)
    expect(tables.previous).toEqual({ nonce, died: 'presumed' })
    await tables.close()
  })

  test('a holder on another host whose heart beats is left alone', async () => {
    await filled()
    const { nonce } = await plantHolder(folder.path, { host: 'elsewhere', pid: 77 })
    const clock = createVirtualClock()
    let beats = 0
    const beat = () => {
      if (clock.monotonic() < 8_000) return
      beats += 1
      void meddle(folder.path, (environment) => {
        putHeartbeat(environment, nonce, beats)
      })
    }
    await expect(drive(clock, openAt(folder.path, { clock }), beat)).rejects.toThrow(/77 on elsewhere/)
  })

  test('a holder gives a sign of life every ten seconds', async () => {
    const clock = createVirtualClock()
    const tables = await openAt(folder.path, { clock })
    const read = () => meddle(folder.path, (environment) => environment.meta.getBinary('heartbeat')?.toString())
    const before = await read()
    await clock.advance(10_000)
    await tables.commit([{ actions: [put] }])
    expect(await read()).not.toBe(before)
    await tables.close()
    expect(clock.timers).toBe(0)
  })

  test('a holder that was overtaken writes nothing more and says why', async () => {
    const tables = await openAt(folder.path)
    await tables.commit([{ actions: [{ ...put, keep: true }] }])
    await plantHolder(folder.path, { host: 'elsewhere' })
    const update = { kind: 'update', table: 'things', key: ['a'], add: { n: 1 } } as const
    const verdicts = await tables.commit([{ actions: [update] }, { actions: [put] }])
    expect(verdicts.map((verdict) => verdict.kind === 'failed' && verdict.fault.code)).toEqual([
      'HOLDER_LOST',
      'HOLDER_LOST',
    ])
    expect(verdicts[0]).toMatchObject({ fault: { outcome: 'none', retry: 'never' } })
    await expect(tables.get('things', ['a'])).rejects.toMatchObject({ code: 'HOLDER_LOST' })
    await tables.close()
    const holder = await meddle(folder.path, (environment) => readHolder(environment))
    expect(holder?.host).toBe('elsewhere')
  })

  test('an overtaken holder is not told that its conditions failed, but that it was overtaken', async () => {
    const tables = await openAt(folder.path)
    await plantHolder(folder.path, { host: 'elsewhere' })
    const [verdict] = await tables.commit([{ actions: [{ ...put, if: { test: 'present' } }] }])
    expect(verdict).toMatchObject({ kind: 'failed', fault: { code: 'HOLDER_LOST' } })
    await tables.close()
  })

  test('this machine knows itself: alive now, and not the process of its id at another time', () => {
    const host = systemHost()
    expect(host.isAlive(process.pid, host.startTime)).toBe(true)
    expect(host.isAlive(4_194_305, '')).toBe(false)
    const own = { host: host.hostname, bootId: host.bootId, pidNamespace: host.pidNamespace, nonce: '0' }
    expect(judge({ ...own, pid: process.pid, startTime: host.startTime }, host)).toBe('alive')
  })
})

describe('the path', () => {
  const unusable = (path: string, why: RegExp, over = {}) => {
    const opening = openAt(path, over)
    return Promise.all([
      expect(opening).rejects.toMatchObject({ code: 'DIRECTORY_UNUSABLE', path }),
      expect(opening).rejects.toThrow(why),
    ])
  }

  test('a directory is made for nobody else to look into', async () => {
    await filled()
    expect(statSync(folder.path).mode & 0o777).toBe(0o700)
    expect(statSync(join(folder.path, 'data.mdb')).mode & 0o777).toBe(0o600)
  })

  test('K07 a missing parent, a file, a foreign owner and a network file system are refused with path and advice', async () => {
    await unusable(join(folder.folder, 'no', 'where'), /parent.*create the parent/)
    const file = join(folder.folder, 'file')
    writeFileSync(file, '')
    await unusable(file, /not a directory.*choose another/)
    await unusable(join(file, 'below'), /cannot be/)
    mkdirSync(folder.path)
    await unusable(folder.path, /belongs to user/, { host: { ...systemHost(), uid: 12_345 } })
    await unusable(folder.path, /NFS.*local disk/, { host: { ...systemHost(), fileSystem: async () => 0x6969 } })
  })

  test('K07 a directory that cannot be written is refused', async () => {
    mkdirSync(folder.path)
    chmodSync(folder.path, 0o500)
    // The superuser may write everywhere; test/real has a read-only file system for that case.
    const host = systemHost()
    if (host.uid === 0) await openAt(folder.path).then((tables) => tables.close())
    else await unusable(folder.path, /cannot be written.*permissions/)
    chmodSync(folder.path, 0o700)
  })
})

describe('the format', () => {
  const plantVersion = (version: number) =>
    meddle(folder.path, (environment) =>
      environment.meta.putSync('format', Buffer.from(JSON.stringify({ version, schemas: contractSchemas }))),
    )

  test.each([formatVersion + 1, formatVersion - 1])('K08 format %s is refused and left as it is', async (version) => {
    await filled()
    await plantVersion(version)
    await expect(openAt(folder.path)).rejects.toMatchObject({ code: 'FORMAT_UNKNOWN', path: folder.path })
    await plantVersion(formatVersion)
    const tables = await openAt(folder.path)
    expect(tables.previous).toBeUndefined()
    expect(await tables.get('things', ['a'])).toEqual(put.row)
    await tables.close()
  })

  test('K08 an older format with a known way is brought up to date, after a backup', async () => {
    await filled()
    await plantVersion(formatVersion - 1)
    const migrations = new Map([
      [
        formatVersion - 1,
        ({ meta }: { meta: { putSync(key: string, value: Buffer): void } }) => meta.putSync('moved', Buffer.from('1')),
      ],
    ])
    const tables = await openAt(folder.path, { migrations })
    expect(await tables.get('things', ['a'])).toEqual(put.row)
    await tables.close()
    const moved = (path: string) => meddle(path, ({ meta }) => meta.getBinary('moved')?.toString())
    expect(await moved(folder.path)).toBe('1')
    expect(await moved(`${folder.path}.format-${formatVersion - 1}`)).toBeUndefined()
    await (await openAt(folder.path)).close()
  })

  test('K08 a table with other indexes needs a new format; a table that is new does not', () => {
    const [things, ...others] = contractSchemas
    const stored = { version: formatVersion, schemas: contractSchemas.slice(0, 1) }
    expect(checkFormat('/somewhere', stored, contractSchemas)).toEqual([])
    const changed = [{ ...things, indexes: {} }, ...others] as typeof contractSchemas
    expect(() => checkFormat('/somewhere', stored, changed)).toThrow(/things/)
  })
})

test('K11 without the native module nothing starts, and the message says what to do', async () => {
  const engine = () => Promise.reject(new Error('no native build was found'))
  const opening = openAt(folder.path, { engine })
  await expect(opening).rejects.toMatchObject({ code: 'ENGINE_MISSING' })
  await expect(opening).rejects.toThrow(/install again/)
})

test('K12 a clock before 2026 is warned about and stops nothing', async () => {
  const warnings: string[] = []
  const warn = (message: string) => void warnings.push(message)
  const early = await openAt(folder.path, { warn, clock: createVirtualClock(Date.UTC(2020, 0, 1)) })
  await early.close()
  expect(warnings).toEqual([expect.stringMatching(/clock/)])
  const late = await openAt(folder.path, { warn, clock: createVirtualClock(Date.UTC(2027, 0, 1)) })
  await late.close()
  expect(warnings).toHaveLength(1)
})
