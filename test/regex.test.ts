import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { regexLiterals, starHeight } from './support/star-height.ts'

const top = join(import.meta.dirname, '..')
const files = readdirSync(join(top, 'src'), { recursive: true, encoding: 'utf8' })
  .filter((file) => file.endsWith('.ts'))
  .map((file) => ({ file, text: readFileSync(join(top, 'src', file), 'utf8') }))

describe('M18 regular expressions', () => {
  test('M18 none of ours has a repetition inside a repetition', () => {
    const found = files.flatMap(({ file, text }) => regexLiterals(text).map((pattern) => ({ file, pattern })))
    expect(found.length).toBeGreaterThan(30)
    expect(found.filter(({ pattern }) => starHeight(pattern) > 1)).toEqual([])
  })

  test('M18 none is made from what somebody sends', () => {
    expect(files.filter(({ text }) => /new RegExp\(|\bRegExp\(/.test(text)).map(({ file }) => file)).toEqual([])
  })

  test.each([
    ['^[a-z]+$', 1],
    ['^(a|b)*c$', 1],
    ['(a+)+$', 2],
    ['^(?:[a-z]+\\.)*x', 2],
    ['((a*)b)*', 2],
    ['[(a+)+]+', 1],
    ['\\(a+\\)+', 1],
    ['a{2,}b{3}', 1],
    ['(a{2,})+', 2],
  ])('the height of %s is %i', (pattern, height) => {
    expect(starHeight(pattern)).toBe(height)
  })
})
