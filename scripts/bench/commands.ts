// Short programs as jobs, each enqueued, claimed, run, logged and settled durably, against bare spawning of the same program with
// pipes at the same concurrency. Run: npm run bench -- commands

import type { Round } from './command-rivals.ts'
import { type Partner, startPartner } from './partner.ts'
import { median, type Row } from './row.ts'

const rounds = 5
const warmUps = 3
const jobsPerRound = 400
/** How many jobs a process has behind it when it is measured again. */
const jobsBefore = 10_000

type Rival = Partner<Round, number>
interface Pair {
  readonly bare: number
  readonly ours: number
}

const start = async (inFlight: number): Promise<readonly [Rival, Rival]> => [
  await startPartner<Round, number>('command-rivals', ['bare']),
  await startPartner<Round, number>('command-rivals', ['jobs', String(inFlight)]),
]

/** The two sides take turns, so that whatever else the machine does hits both. */
const compare = async ([bare, ours]: readonly [Rival, Rival], inFlight: number): Promise<readonly Pair[]> => {
  const pairs: Pair[] = []
  for (let round = -warmUps; round < rounds; round++) {
    const question = { jobs: jobsPerRound, inFlight }
    const pair = { bare: await bare.ask(question), ours: await ours.ask(question) }
    if (round >= 0) pairs.push(pair)
  }
  return pairs
}

const ratioOf = (pairs: readonly Pair[]): number => median(pairs.map(({ bare, ours }) => ours / bare))

const rowsOf = (inFlight: number, target: number, pairs: readonly Pair[]): readonly Row[] => {
  const ratio = ratioOf(pairs)
  return [
    { name: `bare spawn, ${inFlight} in flight`, value: median(pairs.map(({ bare }) => bare)), unit: 'programs/s' },
    {
      name: `command jobs, ${inFlight} in flight`,
      value: median(pairs.map(({ ours }) => ours)),
      unit: 'jobs/s',
      ratio,
      target,
      moreIsBetter: true,
      ok: ratio >= target,
    },
  ]
}

export const benchCommands = async (): Promise<readonly Row[]> => {
  const few = await start(8)
  const atEight = await compare(few, 8)
  for (const rival of few) await rival.end()

  const many = await start(32)
  const fresh = await compare(many, 32)
  await many[1].ask({ jobs: jobsBefore - (rounds + warmUps) * jobsPerRound, inFlight: 32 })
  const tired = await compare(many, 32)
  for (const rival of many) await rival.end()

  // Of ratios to bare spawning at the same time, because the machine may have become slower or faster meanwhile.
  const kept = ratioOf(tired) / ratioOf(fresh)
  return [
    ...rowsOf(32, 0.85, fresh),
    ...rowsOf(8, 0.6, atEight),
    {
      name: `command jobs after ${jobsBefore.toLocaleString('en-US')} others, 32 in flight; ratio: to before`,
      value: median(tired.map(({ ours }) => ours)),
      unit: 'jobs/s',
      ratio: kept,
      target: 0.9,
      moreIsBetter: true,
      ok: kept >= 0.9,
    },
  ]
}
