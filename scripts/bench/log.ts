// Lines of a child through the real runtime: read, split, hashed, compressed, durable in the embedded store and seen by a follower
// in another process, against bare splitting of what the same child writes. Run: npm run bench -- log

import { spawn } from 'node:child_process'
import { extname, join } from 'node:path'
import type { Followed, ToFollow } from './log-follower.ts'
import { startPartner } from './partner.ts'
import { type Rig, startRig } from './rig.ts'
import { median, type Row } from './row.ts'

const printer = join(import.meta.dirname, `print-lines${extname(import.meta.filename)}`)
const commandOf = (kind: string, lines: number): readonly string[] => [process.execPath, printer, kind, String(lines)]

type Follow = (question: ToFollow) => Promise<Followed>

/** Lines a second, from the first bytes on: how long a program takes to start is not ours. */
const bareSplit = (kind: string, wanted: number): Promise<number> =>
  new Promise((resolve, reject) => {
    const [program = '', ...rest] = commandOf(kind, wanted)
    const child = spawn(program, rest, { stdio: ['ignore', 'pipe', 'pipe'] })
    let lines = 0
    let begun: number | undefined
    child.stdout.on('data', (chunk: Buffer) => {
      begun ??= performance.now()
      for (let at = chunk.indexOf(10); at >= 0; at = chunk.indexOf(10, at + 1)) lines += 1
    })
    child.once('close', () => {
      if (lines !== wanted) reject(new Error(`${lines} of ${wanted} lines came`))
      resolve((lines * 1_000) / (performance.now() - (begun ?? 0)))
    })
  })

const throughRuntime = async (rig: Rig, follow: Follow, kind: string, wanted: number): Promise<number> => {
  // Late enough that the follower is there when the child begins.
  const params = { kind: 'command', argv: commandOf(kind, wanted) } as const
  const { jobId } = await rig.runtime.enqueue({ queue: 'default', params, delayMs: 150 })
  const { lines, firstAt, endedAt } = await follow({ ...rig.at, jobId })
  // A line that was shown while it was being written counts twice.
  if (lines < wanted || lines > wanted * 1.01)
    throw new Error(`${lines} outputs of ${wanted} lines reached the follower`)
  return (wanted * 1_000) / (endedAt - firstAt)
}

const cases = [
  {
    kind: 'numbered',
    what: '80-byte lines with a running number',
    lines: 1_000_000,
    warmUps: 6,
    rounds: 9,
    target: 0.2,
  },
  { kind: 'service', what: '80-byte lines as a service logs them', lines: 600_000, warmUps: 1, rounds: 3 },
] as const

export const benchLog = async (): Promise<readonly Row[]> => {
  const follower = await startPartner<ToFollow, Followed>('log-follower')
  const rig = await startRig()
  const rows: Row[] = []
  for (const { kind, what, lines, warmUps, rounds, ...promised } of cases) {
    const pairs: { readonly bare: number; readonly ours: number }[] = []
    // A server runs for weeks: what it does at its first few million lines is not what is asked for.
    for (let round = -warmUps; round < rounds; round++) {
      const bare = await bareSplit(kind, lines)
      const ours = await throughRuntime(rig, follower.ask, kind, lines)
      if (round >= 0) pairs.push({ bare, ours })
    }
    const ratio = median(pairs.map(({ bare, ours }) => ours / bare))
    const target = 'target' in promised ? promised.target : undefined
    rows.push(
      { name: `bare splitting, ${what}`, value: median(pairs.map(({ bare }) => bare)), unit: 'lines/s' },
      {
        name: `durable and followed from another process, ${what}`,
        value: median(pairs.map(({ ours }) => ours)),
        unit: 'lines/s',
        ratio,
        ...(target === undefined ? {} : { target, moreIsBetter: true as const, ok: ratio >= target }),
      },
    )
  }
  await rig.end()
  await follower.end()
  return rows
}
