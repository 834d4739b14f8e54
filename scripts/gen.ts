// Makes everything that is generated and committed: docs/faults.md, docs/options.md, api/gen. With --check it writes
// nothing, lists what differs and ends with 1.

import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { faultsPage, loadCatalogues, loadOptions, optionsPage } from './reference.ts'

const checkout = join(import.meta.dirname, '..')

/** What each generated file should hold, by its path from the checkout's top. */
type Files = ReadonlyMap<string, string>

const main = async (checking: boolean): Promise<number> => {
  const wanted: Files = new Map([...(await referencePages()), ...protobufCode()])
  const stale = protobufFiles().filter((path) => !wanted.has(path))
  const different = [...wanted].filter(([path, text]) => textAt(path) !== text).map(([path]) => path)
  if (checking) {
    for (const path of different) console.error(`not current: ${path}`)
    for (const path of stale) console.error(`no longer generated: ${path}`)
    if (different.length + stale.length === 0) return 0
    console.error('Run npm run gen and commit the result.')
    return 1
  }
  for (const path of different) write(path, wanted.get(path) ?? '')
  for (const path of stale) rmSync(join(checkout, path))
  console.log(`${wanted.size} generated files: ${different.length} written, ${stale.length} removed`)
  return 0
}

const referencePages = async (): Promise<readonly (readonly [string, string])[]> => {
  const options = await loadOptions(checkout)
  return [
    ['docs/faults.md', faultsPage(await loadCatalogues(checkout))],
    ...(options === undefined ? [] : [['docs/options.md', optionsPage(options)] as const]),
  ]
}

const generatedFolder = 'api/gen'

/** Runs buf in api/, whose buf.gen.yaml writes to `gen`, with a folder for rubbish in front of it. */
const protobufCode = (): readonly (readonly [string, string])[] => {
  if (!existsSync(join(checkout, 'api', 'buf.gen.yaml'))) return []
  const folder = mkdtempSync(join(tmpdir(), 'millrace-gen-'))
  try {
    const programs = join(checkout, 'node_modules', '.bin')
    const { error, status } = spawnSync(join(programs, 'buf'), ['generate', '--output', folder], {
      cwd: join(checkout, 'api'),
      // Its plugin is looked for on the search path.
      env: { ...process.env, PATH: [programs, process.env['PATH']].join(delimiter) },
      stdio: 'inherit',
    })
    if (error !== undefined || status !== 0) throw new Error('buf generate failed', { cause: error ?? status })
    return filesBelow(join(folder, 'gen')).map((file) => [
      `${generatedFolder}/${file}`,
      readFileSync(join(folder, 'gen', file), 'utf8'),
    ])
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

const protobufFiles = (): readonly string[] =>
  filesBelow(join(checkout, generatedFolder)).map((file) => `${generatedFolder}/${file}`)

const filesBelow = (folder: string): readonly string[] =>
  existsSync(folder)
    ? readdirSync(folder, { recursive: true, encoding: 'utf8' })
        .filter((file) => statSync(join(folder, file)).isFile())
        .map((file) => file.replaceAll('\\', '/'))
    : []

const textAt = (path: string): string | undefined =>
  existsSync(join(checkout, path)) ? readFileSync(join(checkout, path), 'utf8') : undefined

const write = (path: string, text: string): void => {
  mkdirSync(dirname(join(checkout, path)), { recursive: true })
  writeFileSync(join(checkout, path), text)
}

process.exitCode = await main(process.argv.includes('--check'))
