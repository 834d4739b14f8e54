import { readdir, readFile } from 'node:fs/promises'
import { type Clock, sleep } from '../kernel/clock.ts'
import { attemptVariable, jobIdVariable } from './environment.ts'
import { processStatus, signalGroup } from './process-group.ts'

/** Whose processes are to be killed: those of one attempt, or of all attempts of a job. */
export interface Leftover {
  readonly jobId: string
  readonly attempt?: number
}

/** Whoever starts processes faster than they are killed is not waited for. */
const roundsMax = 50
const pauseMs = 20

/**
 * Kills the processes, with their groups, that still carry the mark of these jobs in their environment, and resolves when they
 * are gone. A process that cleared its environment, or belongs to another user, is not found. Does nothing without /proc.
 * Says how many it found, and how many of them were still there when it stopped waiting.
 */
export const killLeftovers = async (
  deps: { readonly clock: Clock },
  wanted: readonly Leftover[],
): Promise<{ readonly killed: number; readonly left: number }> => {
  const killed = new Set<number>()
  let left: readonly Marked[] = []
  for (let round = 0; round < roundsMax; round++) {
    left = await findMarked(wanted)
    if (left.length === 0) break
    for (const { pid, group } of left) {
      killed.add(pid)
      signalGroup(group, 'SIGKILL')
    }
    await sleep(deps.clock, pauseMs)
  }
  return { killed: killed.size, left: left.length }
}

/** The groups of the marked processes, by process. */
const findMarked = async (wanted: readonly Leftover[]): Promise<readonly Marked[]> => {
  if (wanted.length === 0) return []
  const marks = wanted.map(({ jobId, attempt }) => ({
    job: `${jobIdVariable}=${jobId}`,
    attempt: attempt === undefined ? undefined : `${attemptVariable}=${attempt}`,
  }))
  const own = processStatus('self')?.group
  const found: Marked[] = []
  for (const name of await readdir('/proc').catch(() => [])) {
    if (!/^\d+$/.test(name)) continue
    // A zombie's environment is empty, so what is only not buried yet counts as gone.
    const variables = new Set((await readFile(`/proc/${name}/environ`, 'latin1').catch(() => '')).split('\0'))
    const isMarked = marks.some(
      ({ job, attempt }) => variables.has(job) && (attempt === undefined || variables.has(attempt)),
    )
    if (!isMarked) continue
    const pid = Number(name)
    const group = processStatus(pid)?.group ?? 0
    // Nobody kills the group that it is in itself: a runtime can be part of a job of another runtime.
    if (group > 1 && group !== own) found.push({ pid, group })
  }
  return found
}

interface Marked {
  readonly pid: number
  readonly group: number
}
