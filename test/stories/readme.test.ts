import { execFile } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, test } from 'vitest'

const top = join(import.meta.dirname, '..', '..')
const readme = readFileSync(join(top, 'README.md'), 'utf8')
const blocks = [...readme.matchAll(/^```(\w*)\n(.*?)^```$/gms)].map(([, language, text]) => ({ language, text }))

describe('the README', () => {
  test('shows a program, and what it really prints', async () => {
    const program = readFileSync(join(top, 'scripts', 'demo.ts'), 'utf8').replace("'../src/index.ts'", "'millrace'")
    expect(blocks[0]).toEqual({ language: 'ts', text: program })
    const run = promisify(execFile)
    const { stdout } = await run(join(top, 'node_modules', '.bin', 'tsx'), [join(top, 'scripts', 'demo.ts')])
    expect(blocks[1]).toEqual({ language: '', text: stdout })
  })

  test('names commands and pages that exist', () => {
    const { bin, scripts } = JSON.parse(readFileSync(join(top, 'package.json'), 'utf8')) as {
      bin: Record<string, string>
      scripts: Record<string, string>
    }
    const commands = blocks.filter(({ language }) => language === 'sh').map(({ text }) => text?.trim())
    expect(commands).toEqual(['npm ci && npx millrace run -- node --version', 'npm test'])
    expect(Object.keys(bin)).toEqual(['millrace'])
    expect(Object.keys(scripts)).toEqual(expect.arrayContaining(['prepare', 'test']))
    for (const [, path] of readme.matchAll(/\]\((?!http)([^)]+)\)/g)) {
      expect(existsSync(join(top, path as string)), path).toBe(true)
    }
  })
})
