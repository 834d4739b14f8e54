// What npm runs after `npm ci`, and again before `npx millrace`: makes the bundle if something changed since it was made.
// Plain JavaScript, because it must do no harm where nothing is installed but what a user needs, and cost nothing when there
// is nothing to do. It never fails: whoever only wants the library can do without the bundle.

import { spawnSync } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const checkout = join(dirname(fileURLToPath(import.meta.url)), '..')
const program = join(checkout, 'dist/bin/millrace.js')
const stamp = join(checkout, 'dist/bin.stamp')
const inputs = ['src', 'machines', 'api/gen', 'scripts/build.ts', 'package.json', 'package-lock.json']

/** Every file with its size and time, and folders too: a file that is gone shows only there. */
const fingerprint = () => {
  const parts = [process.versions.node]
  const look = (path) => {
    const found = statSync(path, { throwIfNoEntry: false })
    if (found === undefined) return
    parts.push(`${path.slice(checkout.length)} ${found.mtimeMs} ${found.isFile() ? found.size : 0}`)
    if (found.isDirectory()) for (const name of readdirSync(path).sort()) look(join(path, name))
  }
  for (const input of inputs) look(join(checkout, input))
  return parts.join('\n')
}

const canBuild = () =>
  ['esbuild', 'tsx'].every((name) => existsSync(join(checkout, 'node_modules', name))) &&
  existsSync(join(checkout, 'scripts/build.ts'))

try {
  const now = fingerprint()
  const isFresh = existsSync(program) && existsSync(stamp) && readFileSync(stamp, 'utf8') === now
  if (isFresh) chmodSync(program, 0o755)
  else if (canBuild()) {
    const { status } = spawnSync(process.execPath, ['--import', 'tsx', 'scripts/build.ts', '--bundle'], {
      cwd: checkout,
      stdio: ['ignore', 'inherit', 'inherit'],
    })
    mkdirSync(dirname(stamp), { recursive: true })
    if (status === 0) writeFileSync(stamp, now)
    else console.error('millrace: the command line could not be bundled; `npm run build` says why')
  }
} catch (error) {
  console.error(`millrace: the command line could not be bundled: ${error instanceof Error ? error.message : error}`)
}
