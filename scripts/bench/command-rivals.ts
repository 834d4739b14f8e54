// Runs many short programs, bare or as jobs, each way in a process of its own: starting a program takes longer the more memory
// the starting process has. `commands.ts` asks it.

import { spawn } from 'node:child_process'
import { answerQuestions } from './partner.ts'
import { createEnds, startRig } from './rig.ts'

export interface Round {
  readonly jobs: number
  readonly inFlight: number
}

const program = '/bin/true'

const bare = (): Promise<void> =>
  new Promise((resolve, reject) => {
    const child = spawn(program, [], { stdio: ['ignore', 'pipe', 'pipe'], detached: true })
    child.stdout.resume()
    child.stderr.resume()
    child.once('error', reject)
    child.once('close', () => resolve())
  })

const asJobs = async (slots: number) => {
  const ends = createEnds()
  const rig = await startRig({ worker: { slots } }, { emit: ends.emit })
  const run = async (): Promise<void> => {
    const { jobId } = await rig.runtime.enqueue({ queue: 'default', params: { kind: 'command', argv: [program] } })
    await ends.of(jobId)
  }
  return { run, end: rig.end }
}

const [way, slots = '8'] = process.argv.slice(2)
const { run, end } = way === 'jobs' ? await asJobs(Number(slots)) : { run: bare, end: async () => {} }

/** Programs a second. */
answerQuestions<Round, number>(async ({ jobs, inFlight }) => {
  let left = jobs
  const flow = async () => {
    while (left-- > 0) await run()
  }
  const begun = performance.now()
  await Promise.all(Array.from({ length: inFlight }, flow))
  return (jobs * 1_000) / (performance.now() - begun)
}, end)
