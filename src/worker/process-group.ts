import { readFileSync } from 'node:fs'

/** Signals every process of a group. False if nobody is left in it, or nobody we may signal. */
export const signalGroup = (group: number, signal: NodeJS.Signals): boolean => {
  try {
    return process.kill(-group, signal)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ESRCH' || code === 'EPERM') return false
    throw error
  }
}

export interface ProcessStatus {
  readonly group: number
  /** When it began, in the platform's own unit. */
  readonly startTime: string
}

/** What /proc says of a process; undefined if there is none, or no /proc. */
export const processStatus = (pid: number | 'self'): ProcessStatus | undefined => {
  const text = readText(`/proc/${pid}/stat`)
  if (text === undefined) return undefined
  // The second field is the program's name in parentheses and may hold anything, so count from the last one.
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
  return { group: Number(fields[2]), startTime: fields[19] ?? '' }
}

const readText = (path: string): string | undefined => {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return undefined
  }
}
