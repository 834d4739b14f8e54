import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { StoredItem } from '../../src/log/event.ts'
import type { Entry } from '../../src/log/follower.ts'
import { aBatch, aFollowRig, anEnd, anError, aStart, jobId, settle } from './follow-rig.ts'
import { eventsOf } from './rig.ts'

// SUB-1 to SUB-4 over random logs: attempts, gaps, writers here and elsewhere, slow and failing reads, and readers that are cut
// anywhere and come again from the next sequence.

/** A log of one attempt: batches of these sizes between start and end, some of them lost for ever. */
const attempts = fc.array(
  fc.record({
    sizes: fc.array(fc.record({ size: fc.integer({ min: 1, max: 12 }), lost: fc.integer({ min: 0, max: 9 }) }), {
      maxLength: 12,
    }),
    ends: fc.boolean(),
  }),
  { minLength: 1, maxLength: 3 },
)

interface Made {
  readonly items: readonly StoredItem[]
  readonly expected: readonly string[]
}

/** What is stored of an attempt, and what a reader must be told of it in the end. */
const made = (
  number: number,
  { sizes, ends }: { sizes: readonly { size: number; lost: number }[]; ends: boolean },
): Made => {
  const items: StoredItem[] = [aStart()]
  const expected = [`${number}:1`]
  let sequence = 2
  let missing: number | undefined
  const found = (item: StoredItem) => {
    if (missing !== undefined) expected.push(`${number} missing ${missing} ${item.sequence - 1}`)
    missing = undefined
    items.push(item)
    for (let at = item.sequence; at <= item.endSequence; at++) expected.push(`${number}:${at}`)
  }
  for (const { size, lost } of sizes) {
    if (lost === 0) missing ??= sequence
    else found(lost === 1 ? anError(sequence) : aBatch(sequence, size))
    sequence += lost === 1 ? 1 : size
  }
  if (ends) found(anEnd(sequence))
  const last = items.at(-1)?.endSequence ?? 0
  expected.push(`${number} attemptEnded ${last} ${ends}`)
  return { items, expected }
}

const saidBy = (entry: Entry, from: { attempt: number; sequence: number }): readonly string[] => {
  if ('item' in entry) {
    const least = entry.attempt === from.attempt ? from.sequence : 0
    return eventsOf([entry.item], least).map(({ sequence }) => `${entry.attempt}:${sequence}`)
  }
  const { kind, ...rest } = entry.marker
  if (kind === 'keepAlive') return []
  return [[entry.attempt, kind, ...Object.values(rest).filter((value) => value !== undefined)].join(' ')]
}

test('SUB-1 SUB-2 SUB-3 SUB-4 G03 whatever is cut and resumed, the views join to the whole', async () => {
  await fc.assert(
    fc.asyncProperty(
      attempts,
      fc.array(fc.nat(9), { maxLength: 30 }),
      fc.array(fc.integer({ min: 1, max: 15 }), { maxLength: 8 }),
      fc.boolean(),
      async (logs, pace, cuts, isLocal) => {
        const rig = aFollowRig({ slow: 0.2, slowMs: 700, readFailed: 0.1 })
        const all = logs.map((log, place) => made(place + 1, log))
        const expected = [...all.flatMap((one) => one.expected), `${all.length} jobEnded COMPLETED`]

        let wrote = false
        const write = async () => {
          let step = 0
          for (const [place, { items }] of all.entries()) {
            rig.set({ state: 'RUNNING', attempt: place + 1 })
            for (const item of items) {
              if (isLocal) await rig.publish([item], place + 1)
              else await rig.store([item], place + 1)
              const waitMs = (pace[step++ % Math.max(1, pace.length)] ?? 0) * 100
              if (waitMs > 0) await new Promise<void>((resolve) => rig.clock.setTimeout(resolve, waitMs))
            }
          }
          rig.set({ state: 'COMPLETED' })
          if (isLocal) rig.tell()
          wrote = true
        }

        const view: string[] = []
        let ended = false
        const read = async () => {
          let from = { attempt: 1, sequence: 0 }
          for (let cut = 0; !ended; cut++) {
            let left = cuts[cut] ?? Number.POSITIVE_INFINITY
            const request = { jobId, attempt: from.attempt, fromSequence: from.sequence }
            const begun = from
            for await (const entry of rig.follower.follow(request)) {
              for (const said of saidBy(entry, begun)) {
                view.push(said)
                // A prefix at each time, not only in the end.
                expect(said).toBe(expected[view.length - 1])
                const [attempt, rest = ''] = said.split(/[: ](.*)/)
                if (said.includes('jobEnded')) ended = true
                else if (said.includes('attemptEnded')) from = { attempt: Number(attempt) + 1, sequence: 0 }
                else if (said.includes('missing'))
                  from = { attempt: Number(attempt), sequence: Number(said.split(' ')[3]) + 1 }
                else from = { attempt: Number(attempt), sequence: Number(rest) + 1 }
                left -= 1
                if (left <= 0) break
              }
              if (left <= 0) break
            }
          }
        }
        const done = Promise.all([write(), read()])
        let settled = false
        const finished = done.finally(() => {
          settled = true
        })
        finished.catch(() => {})
        for (let step = 0; !settled && step < 20_000; step++) {
          await settle()
          if (!settled) rig.clock.step()
        }
        await finished
        expect(wrote).toBe(true)
        expect(view).toEqual(expected)
        expect(rig.tails.size()).toBe(0)
        // A read that was fetching ahead may still be slow; nothing arms a timer anew.
        await rig.clock.runUntilQuiet(20)
        expect(rig.clock.timers).toBe(0)
      },
    ),
    { numRuns: 60 },
  )
}, 60_000)
