import { expect, test } from 'vitest'
import { createRing } from '../../src/log/ring.ts'
import { createTails, defaultTailOptions } from '../../src/log/tail.ts'
import { createVirtualClock } from '../../src/sim/virtual-clock.ts'
import { aBatch, running, settle } from './follow-rig.ts'

test('a ring holds a row without gaps: what is known is passed over, and a gap begins it anew', () => {
  const ring = createRing(1_000_000)
  expect(ring.put([aBatch(1, 5), aBatch(6, 5)])).toBe(true)
  expect(ring.put([aBatch(6, 5)])).toBe(false)
  expect([1, 5, 6, 10, 11].map((sequence) => ring.find(sequence)?.sequence)).toEqual([1, 1, 6, 6, undefined])
  ring.put([aBatch(20, 2)])
  expect([6, 15, 20].map((sequence) => ring.find(sequence)?.sequence)).toEqual([undefined, undefined, 20])
  expect(ring.end()).toBe(21)
})

test('G10 a ring keeps what fits, and the newest in any case', () => {
  const ring = createRing(1)
  ring.put([aBatch(1, 5), aBatch(6, 5)])
  expect([ring.find(1), ring.find(6)?.sequence]).toEqual([undefined, 6])
})

test('G04 a wake-up between looking and waiting is not lost', async () => {
  const clock = createVirtualClock()
  const tails = createTails({ clock, emit: () => {} }, { ...defaultTailOptions, pollMsMax: 1_000_000 })
  const tail = tails.join('log', async () => ({ status: running, items: [], end: 0 }))
  const seen = tail.version()
  tails.offer('log', [aBatch(1, 1)])
  let woken = 0
  tail.wait(
    seen,
    () => {
      woken += 1
    },
    false,
  )
  await settle()
  expect(woken).toBe(1)
  tail.leave()
  expect([tails.size(), clock.timers]).toEqual([0, 0])
})

test('a look that is asked for while one is under way begins after it, once for all who ask', async () => {
  const clock = createVirtualClock()
  const tails = createTails({ clock, emit: () => {} })
  const under: (() => void)[] = []
  const look = () =>
    new Promise<{ status: typeof running; items: []; end: number }>((resolve) =>
      under.push(() => resolve({ status: running, items: [], end: 0 })),
    )
  const tail = tails.join('log', look)
  const looks = [tail.look(), tail.look(), tail.look()]
  expect(under).toHaveLength(1)
  under[0]?.()
  await settle()
  expect(under).toHaveLength(2)
  under[1]?.()
  await Promise.all(looks)
  expect(under).toHaveLength(2)
  tail.leave()
})
