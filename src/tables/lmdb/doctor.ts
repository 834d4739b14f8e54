import { spawn } from 'node:child_process'
import { once } from 'node:events'
import type { DirectoryReport } from './check.ts'

const errorTextMax = 1_000

/**
 * Checks a directory in a process of its own, because a damaged map can end the process that reads it (K04). Works on a
 * directory that is in use: it reads one snapshot.
 */
export const doctor = async (path: string, signal?: AbortSignal): Promise<DirectoryReport> => {
  const isSource = import.meta.url.endsWith('.ts')
  const module = new URL(isSource ? './check.ts' : './check.js', import.meta.url).href
  const script =
    `const { checkDirectory } = await import(${JSON.stringify(module)});` +
    `process.stdout.write(JSON.stringify(await checkDirectory(${JSON.stringify(path)})))`
  const child = spawn(
    process.execPath,
    [...(isSource ? ['--import', 'tsx'] : []), '--input-type=module', '--eval', script],
    {
      stdio: ['ignore', 'pipe', 'pipe'],
      ...(isSource ? { cwd: new URL('.', import.meta.url) } : {}),
      ...(signal ? { signal } : {}),
    },
  )
  const output: Buffer[] = []
  const errors: Buffer[] = []
  child.stdout.on('data', (chunk: Buffer) => output.push(chunk))
  child.stderr.on('data', (chunk: Buffer) => errors.push(chunk))
  const [code, killedBy] = (await once(child, 'close')) as [number | null, NodeJS.Signals | null]
  if (code === 0) return JSON.parse(Buffer.concat(output).toString()) as DirectoryReport
  const reason = Buffer.concat(errors).toString().slice(-errorTextMax).trim()
  return { sound: false, rows: 0, problems: [`reading it ended a process with ${killedBy ?? code}: ${reason}`] }
}
