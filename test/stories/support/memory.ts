import { readFileSync } from 'node:fs'

/** What a process holds in memory that is no file, in megabytes: a mapped data file is not its own to count. */
export const anonymousMegabytes = (pid: number): number => {
  const [, kilobytes = '0'] = readFileSync(`/proc/${pid}/status`, 'utf8').match(/^RssAnon:\s+(\d+) kB$/m) ?? []
  return Number(kilobytes) / 1_024
}

/** Looks at a process every now and then; `most` is the most it has held so far. */
export const watchMemory = (pid: number): { most(): number; stop(): void } => {
  let most = anonymousMegabytes(pid)
  const timer = setInterval(() => {
    most = Math.max(most, anonymousMegabytes(pid))
  }, 20)
  return { most: () => most, stop: () => clearInterval(timer) }
}
