// `millrace up` as people start it: the bundle, in a process of its own, on a data directory of its own.

import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { checkout } from '../real/folders.ts'
import type { Place } from './rig.ts'

export const program = join(checkout, 'dist', 'bin', 'millrace.js')

export interface Up {
  readonly pid: number
  readonly at: Place
  /** From the start of the process to its word that it is ready. */
  readonly readyMs: number
  end(): Promise<void>
}

export const startUp = async (): Promise<Up> => {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-bench-'))
  const begun = performance.now()
  const child = spawn(process.execPath, [program, 'up', '--port', '0', '--json', '--quiet', '--data-dir', folder], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const said = await firstLine(child)
  const readyMs = performance.now() - begun
  const { addresses } = JSON.parse(said) as { readonly addresses: readonly string[] }
  const token = readFileSync(join(folder, 'token'), 'utf8').trim()
  return {
    pid: child.pid ?? 0,
    at: { address: addresses[0] ?? '', token },
    readyMs,
    end: async () => {
      const gone = once(child, 'exit')
      child.kill('SIGTERM')
      await gone
      rmSync(folder, { recursive: true })
    },
  }
}

const firstLine = (child: ChildProcess): Promise<string> =>
  new Promise((resolve, reject) => {
    let said = ''
    child.stdout?.on('data', (bytes: Buffer) => {
      said += bytes.toString()
      if (said.includes('\n')) resolve(said)
    })
    child.once('exit', (code) => reject(new Error(`millrace up ended with ${code}`)))
  })

/** Memory that is the process's own: what it maps of files is not. Not a number where the system does not say. */
export const anonymousMegabytes = (pid: number): number => {
  try {
    const found = /^RssAnon:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))
    return found === null ? Number.NaN : Number(found[1]) / 1_024
  } catch {
    return Number.NaN
  }
}
