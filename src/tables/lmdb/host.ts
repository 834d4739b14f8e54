import { readFileSync, readlinkSync } from 'node:fs'
import { statfs } from 'node:fs/promises'
import { hostname } from 'node:os'

/** What this process knows of itself and its neighbours, so that a directory's holder can be judged dead or alive. */
export interface HostFacts {
  readonly hostname: string
  /** Another one after each start of the machine; empty where the platform has none. */
  readonly bootId: string
  /** Process ids mean nothing outside their namespace; empty where there are none. */
  readonly pidNamespace: string
  readonly pid: number
  /** The user whose files we may use; undefined where files have no owners. */
  readonly uid: number | undefined
  /** When this process started, in the platform's own unit; empty where it cannot be known. */
  readonly startTime: string
  /** Whether the process with that id is still the one that started then: ids are used again. */
  isAlive(pid: number, startTime: string): boolean
  /** The magic number of the file system under a path. */
  fileSystem(path: string): Promise<number>
}

/** The machine we really run on. */
export const systemHost = (): HostFacts => ({
  hostname: hostname(),
  bootId: readText('/proc/sys/kernel/random/boot_id'),
  pidNamespace: readNamespace(),
  pid: process.pid,
  uid: process.getuid?.(),
  startTime: statusOf(process.pid)?.startTime ?? '',
  isAlive: (pid, startTime) => {
    if (!answersSignals(pid)) return false
    const status = statusOf(pid)
    if (!status) return true
    return !status.dead && (startTime === '' || status.startTime === startTime)
  },
  fileSystem: async (path) => (await statfs(path)).type,
})

const readText = (path: string): string => {
  try {
    return readFileSync(path, 'utf8').trim()
  } catch {
    return ''
  }
}

const readNamespace = (): string => {
  try {
    return readlinkSync('/proc/self/ns/pid')
  } catch {
    return ''
  }
}

/** State and start of a process by /proc, undefined on platforms without it. A zombie has ended, it is only not buried. */
const statusOf = (pid: number): { readonly dead: boolean; readonly startTime: string } | undefined => {
  const text = readText(`/proc/${pid}/stat`)
  if (text === '') return undefined
  // The second field is the program's name in parentheses and may hold anything, so count from the last one.
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
  return { dead: fields[0] === 'Z' || fields[0] === 'X', startTime: fields[19] ?? '' }
}

const answersSignals = (pid: number): boolean => {
  try {
    return process.kill(pid, 0)
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}
