import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'

const checkout = join(import.meta.dirname, '..', '..')

/** The command line as it is shipped. */
export const bundledProgram = join(checkout, 'dist', 'bin', 'millrace.js')

/** Called once before all tests: whoever starts `millrace` finds it made of the sources as they are. Costs nothing if it is. */
export const setup = (): void => {
  const made = spawnSync(process.execPath, [join(checkout, 'scripts', 'prepare.js')], { encoding: 'utf8' })
  // What npm runs never fails; a test of an old bundle would be worse than none.
  if (made.status !== 0 || made.stderr.includes('could not be bundled') || !existsSync(bundledProgram))
    throw new Error(`the command line could not be bundled: ${made.stderr}`)
}
