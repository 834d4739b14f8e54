import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { durationMs, sizeBytes } from '../../src/cli/parse/quantities.ts'
import { momentMs, timeMs, timeText } from '../../src/cli/parse/time.ts'
import { cutTo, widthOf, wrapTo } from '../../src/cli/render/width.ts'

test.each([
  ['30s', 30_000],
  ['5m', 300_000],
  ['2h', 7_200_000],
  ['1h30m', 5_400_000],
  ['1.5h', 5_400_000],
  ['250ms', 250],
  ['1d', 86_400_000],
  ['2w', 1_209_600_000],
  ['0', 0],
  ['5', undefined],
  ['-5s', undefined],
  ['s', undefined],
  ['5 s', undefined],
  ['1e9h', undefined],
  ['999999999999999w', undefined],
])('the duration %s', (text, ms) => {
  expect(durationMs(text)).toBe(ms)
})

test.each([
  ['512', 512],
  ['64k', 64_000],
  ['10MB', 10_000_000],
  ['256KiB', 262_144],
  ['1.5Gi', 1_610_612_736],
  ['x', undefined],
  ['-1', undefined],
])('the size %s', (text, bytes) => {
  expect(sizeBytes(text)).toBe(bytes)
})

describe('times', () => {
  test.each([
    ['2025-06-15', '2025-06-15T00:00:00.000Z'],
    ['2025-06-15T14:13', '2025-06-15T14:13:00.000Z'],
    ['2025-06-15 14:13:20.5', '2025-06-15T14:13:20.500Z'],
    ['2025-06-15T14:13:20Z', '2025-06-15T14:13:20.000Z'],
    ['2025-06-15T14:13:20+02:00', '2025-06-15T12:13:20.000Z'],
    ['2025-06-15T14:13:20-0530', '2025-06-15T19:43:20.000Z'],
    ['2024-02-29', '2024-02-29T00:00:00.000Z'],
  ])('%s', (text, expected) => {
    expect(timeText(timeMs(text) as number)).toBe(expected)
  })

  test.each([
    '2025-02-29',
    '2025-13-01',
    '2025-00-10',
    '2025-06-31',
    '2025-06-15T24:00',
    '2025-06-15T12',
    'yesterday',
    '',
  ])('%j is none', (text) => {
    expect(timeMs(text)).toBeUndefined()
  })

  test('every time of ten thousand years is written as the platform writes it, and read back', () => {
    const last = Date.UTC(9999, 11, 31)
    fc.assert(
      fc.property(fc.integer({ min: -62_135_596_800_000, max: last }), (ms) => {
        expect(timeText(ms)).toBe(new Date(ms).toISOString())
        expect(timeMs(timeText(ms))).toBe(ms)
      }),
    )
  })

  test('how long ago depends on now', () => {
    expect(momentMs({ agoMs: 5 }, 100)).toBe(95)
    expect(momentMs({ at: 7 }, 100)).toBe(7)
  })
})

describe('width', () => {
  test('wide characters take two columns, combining ones none', () => {
    expect(['a', '日本', 'e\u0301', '😀', ''].map(widthOf)).toEqual([1, 4, 1, 2, 0])
  })

  test('what is cut or wrapped fits, and wrapping loses nothing', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme', maxLength: 40 }), fc.integer({ min: 2, max: 20 }), (raw, columns) => {
        const text = raw.replaceAll(/\p{Cc}/gu, '')
        expect(widthOf(cutTo(text, columns))).toBeLessThanOrEqual(columns)
        const lines = wrapTo(text, columns)
        expect(lines.join('')).toBe(text)
        for (const line of lines) expect(widthOf(line)).toBeLessThanOrEqual(columns)
      }),
    )
  })

  test('colours have no width and stay whole', () => {
    expect(wrapTo('\x1b[31mab\x1b[0mc', 2)).toEqual(['\x1b[31mab\x1b[0m', 'c'])
  })
})
