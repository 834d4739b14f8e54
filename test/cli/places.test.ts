import {
  chmodSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { createFiles } from '../../src/cli/files.ts'
import { holderSocket, socketPathBytesMax } from '../../src/cli/holder-socket.ts'
import { usualConfigFile, usualDataDir } from '../../src/cli/places.ts'
import { ensureToken, readToken, tokenFileOf } from '../../src/cli/token-file.ts'
import { createSeededRandom } from '../../src/sim/seeded-random.ts'

const uid = process.getuid?.()
let folder = ''
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'millrace-places-'))
})
afterEach(() => rmSync(folder, { recursive: true }))

describe('the usual places', () => {
  const home = '/home/ada'
  test.each([
    ['linux', {}, '/home/ada/.local/share/millrace', '/home/ada/.config/millrace/millrace.yaml'],
    ['linux', { XDG_DATA_HOME: '/d', XDG_CONFIG_HOME: '/c' }, '/d/millrace', '/c/millrace/millrace.yaml'],
    [
      'linux',
      { XDG_DATA_HOME: 'relative', XDG_CONFIG_HOME: '' },
      '/home/ada/.local/share/millrace',
      '/home/ada/.config/millrace/millrace.yaml',
    ],
    [
      'darwin',
      { XDG_DATA_HOME: '/d' },
      '/home/ada/Library/Application Support/millrace',
      '/home/ada/Library/Application Support/millrace/millrace.yaml',
    ],
    ['win32', { LOCALAPPDATA: '/local', APPDATA: '/roaming' }, '/local/millrace', '/roaming/millrace/millrace.yaml'],
  ] as const)('on %s with %j', (platform, env, data, config) => {
    expect(usualDataDir({ platform, env, home })).toBe(data)
    expect(usualConfigFile({ platform, env, home })).toBe(config)
  })
})

describe('the socket of a holder', () => {
  const host = { platform: 'linux', temporary: '/tmp', uid: 1000 } as const

  test('lies in the data directory', () => {
    expect(holderSocket('/data', host)).toEqual({ path: '/data/millrace.sock', folder: undefined })
  })

  test('lies below the temporary directory where that would be too long for a socket', () => {
    const long = `/${'x'.repeat(socketPathBytesMax)}`
    const { path, folder: own } = holderSocket(long, host)
    expect(path).toMatch(/^\/tmp\/millrace-1000\/[0-9a-f]{32}$/)
    expect(own).toBe('/tmp/millrace-1000')
    expect(holderSocket(`${long}/y`, host).path).not.toBe(path)
    expect(holderSocket(`${long}/../${long.slice(1)}/`, host).path).toBe(path)
    const longer = holderSocket(long, { ...host, temporary: `/${'t'.repeat(90)}` })
    expect(longer.path.startsWith('/tmp/millrace-1000/')).toBe(true)
  })

  test('never has a path that is cut, in bytes', () => {
    for (let length = 60; length < 130; length++) {
      const { path } = holderSocket(`/${'é'.repeat(length / 2)}`, host)
      expect(Buffer.byteLength(path)).toBeLessThanOrEqual(socketPathBytesMax)
    }
  })

  test('is a pipe on Windows', () => {
    expect(holderSocket('/data', { ...host, platform: 'win32' }).path).toMatch(/^\\\\\.\\pipe\\millrace-[0-9a-f]{32}$/)
  })
})

describe('the token file', () => {
  const deps = { random: createSeededRandom(1), uid }

  test('is made once, for its owner alone', async () => {
    const path = tokenFileOf(folder)
    const token = await ensureToken(deps, path)
    expect(token).toMatch(/^[\w-]{43}$/)
    expect(statSync(path).mode & 0o777).toBe(0o600)
    expect(await ensureToken(deps, path)).toBe(token)
    expect(await readToken(path, uid)).toBe(token)
    expect(readdirSync(folder)).toEqual(['token'])
  })

  test('any number of processes that make it at once get the same one', async () => {
    const path = tokenFileOf(folder)
    const tokens = await Promise.all(
      Array.from({ length: 20 }, (_, at) => ensureToken({ ...deps, random: createSeededRandom(at) }, path)),
    )
    expect(new Set(tokens).size).toBe(1)
    expect(readdirSync(folder)).toEqual(['token'])
  })

  test('that is absent is no token', async () => {
    expect(await readToken(join(folder, 'none'), uid)).toBeUndefined()
  })

  test('M08 that is a link is refused, wherever it leads, and nothing is made through it', async () => {
    const secret = join(folder, 'secret')
    writeFileSync(secret, 'not-a-token', { mode: 0o600 })
    symlinkSync(secret, join(folder, 'link'))
    symlinkSync(join(folder, 'elsewhere'), tokenFileOf(folder))
    await expect(readToken(join(folder, 'link'), uid)).rejects.toMatchObject({ code: 'TOKEN_FILE_UNUSABLE' })
    await expect(ensureToken(deps, tokenFileOf(folder))).rejects.toMatchObject({ code: 'TOKEN_FILE_UNUSABLE' })
    expect(existsSync(join(folder, 'elsewhere'))).toBe(false)
    expect(readFileSync(secret, 'utf8')).toBe('not-a-token')
  })

  test.each([0o640, 0o604, 0o666])('M02 that others can read (%i) is refused', async (mode) => {
    const path = tokenFileOf(folder)
    writeFileSync(path, 'a-token-of-somebody')
    chmodSync(path, mode)
    await expect(readToken(path, uid)).rejects.toThrow('can be read by others')
  })

  test.each([
    ['empty', '', 'holds no token'],
    ['of two lines', 'a\nb', 'holds no token'],
    ['not of letters', 'a\x1bb', 'holds no token'],
    ['too large', 'x'.repeat(5_000), 'too large'],
  ])('M08 that is %s is refused, and its content not shown', async (_, content, message) => {
    const path = tokenFileOf(folder)
    writeFileSync(path, content, { mode: 0o600 })
    await expect(readToken(path, uid)).rejects.toThrow(message)
  })

  test('M08 paths with a NUL and folders are refused', async () => {
    await expect(readToken('a\0b', uid)).rejects.toMatchObject({ code: 'TOKEN_FILE_UNUSABLE' })
    await expect(readToken(folder, uid)).rejects.toMatchObject({ code: 'TOKEN_FILE_UNUSABLE' })
  })
})

describe('the configuration file', () => {
  const files = createFiles(uid)

  test('is read if it is there', async () => {
    writeFileSync(join(folder, 'a.yaml'), 'profile: aws')
    expect(await files.readText(join(folder, 'a.yaml'))).toBe('profile: aws')
    expect(await files.readText(join(folder, 'b.yaml'))).toBeUndefined()
  })

  test('M08 is refused if it is a folder, too large or no path at all', async () => {
    writeFileSync(join(folder, 'large.yaml'), Buffer.alloc(1_048_577))
    await expect(files.readText(folder)).rejects.toMatchObject({ code: 'CONFIG_INVALID' })
    await expect(files.readText(join(folder, 'large.yaml'))).rejects.toThrow('too large')
    await expect(files.readText('a\0b')).rejects.toMatchObject({ code: 'CONFIG_INVALID' })
  })
})
