import fc from 'fast-check'
import { interval, map, take, timer } from 'rxjs'
import { describe, expect, test } from 'vitest'
import { createMachine, fromPromise, setup } from 'xstate'
import { external, missingActors } from '../../machines/external.ts'
import { assert } from '../../src/kernel/assert.ts'
import { sleep, systemClock } from '../../src/kernel/clock.ts'
import { createIds } from '../../src/kernel/ids.ts'
import { systemRandom } from '../../src/kernel/random.ts'
import { ceilingAfter, delayAfter } from '../../src/kernel/retry.ts'
import { createScheduler } from '../../src/kernel/scheduler.ts'
import { createRoot } from '../../src/kernel/start.ts'
import { createSeededRandom } from '../../src/sim/seeded-random.ts'
import { createVirtualClock, settle } from '../../src/sim/virtual-clock.ts'

describe('ids', () => {
  test('are UUIDs of version 7 whose time is the clock’s', () => {
    const clock = createVirtualClock(0x0190_0000_0000)
    const id = createIds(clock, createSeededRandom(1)).next()
    expect(id).toMatch(/^01900000-0000-7000-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
  })

  test('of one maker rise, also 10,000 within a millisecond and when the wall clock goes back', () => {
    const clock = createVirtualClock()
    const ids = createIds(clock, createSeededRandom(1))
    const made = Array.from({ length: 10_000 }, () => ids.next())
    clock.setWall(clock.now() - 3_600_000)
    made.push(ids.next())
    expect(made.toSorted()).toEqual(made)
    expect(new Set(made).size).toBe(made.length)
  })

  test('of two makers never meet', () => {
    const clock = createVirtualClock()
    const [a, b] = [createIds(clock, systemRandom), createIds(clock, systemRandom)]
    const made = new Set(Array.from({ length: 5_000 }, () => [a.next(), b.next()]).flat())
    expect(made.size).toBe(10_000)
  })
})

describe('retry', () => {
  test('waits grow to the cap and end with the attempts', () => {
    const policy = { attemptsMax: 5, baseMs: 100, capMs: 500 }
    expect([1, 2, 3, 4].map((failures) => ceilingAfter(policy, failures))).toEqual([100, 200, 400, 500])
    expect(delayAfter(policy, 4, 0.999)).toBe(499)
    expect(delayAfter(policy, 5, 0.5)).toBeUndefined()
  })

  test('no wait is negative, above its ceiling or not whole, however many failures', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 5_000 }),
        fc.double({ min: 0, max: 0.999999, noNaN: true }),
        (n, chance) => {
          const delay = delayAfter({ attemptsMax: 10_000, baseMs: 50, capMs: 60_000 }, n, chance)
          expect(Number.isInteger(delay)).toBe(true)
          expect(delay).toBeGreaterThanOrEqual(0)
          expect(delay).toBeLessThanOrEqual(60_000)
        },
      ),
    )
  })
})

describe('time', () => {
  test('sleep ends with its time, at once when aborted, and leaves no timer', async () => {
    const clock = createVirtualClock()
    const done: string[] = []
    const controller = new AbortController()
    void sleep(clock, 1_000).then(() => done.push('slept'))
    void sleep(clock, 5_000, controller.signal).then(() => done.push('aborted'))
    await clock.advance(999)
    expect(done).toEqual([])
    await clock.advance(1)
    controller.abort()
    await settle()
    expect(done).toEqual(['slept', 'aborted'])
    expect(clock.timers).toBe(0)
    await sleep(clock, 1, AbortSignal.abort())
  })

  test('the virtual clock fires timers in order, those set on the way included, and promises settle in between', async () => {
    const clock = createVirtualClock()
    const seen: string[] = []
    clock.setTimeout(() => seen.push(`b${clock.monotonic()}`), 20)
    clock.setTimeout(() => {
      seen.push(`a${clock.monotonic()}`)
      clock.setTimeout(() => seen.push(`c${clock.monotonic()}`), 5)
      void Promise.resolve().then(() => seen.push('promise'))
    }, 10)
    clock.clearTimeout(clock.setTimeout(() => seen.push('never'), 1))
    await clock.runUntilQuiet()
    expect(seen).toEqual(['a10', 'promise', 'c15', 'b20'])
    expect(() => clock.setTimeout(() => {}, -1)).toThrow('-1 ms')
  })

  test('the wall clock can be set without moving the monotonic one', async () => {
    const clock = createVirtualClock(1_000)
    await clock.advance(50)
    clock.setWall(7)
    await clock.advance(3)
    expect([clock.now(), clock.monotonic()]).toEqual([10, 53])
  })

  test('the system clock’s monotonic time does not go back', () => {
    const readings = Array.from({ length: 1_000 }, () => systemClock.monotonic())
    expect(readings.toSorted((a, b) => a - b)).toEqual(readings)
  })

  test('RxJS keeps our time', async () => {
    const clock = createVirtualClock()
    const scheduler = createScheduler(clock)
    const seen: string[] = []
    interval(100, scheduler)
      .pipe(
        take(3),
        map((n) => `${n}@${clock.monotonic()}`),
      )
      .subscribe((text) => seen.push(text))
    const cancelled = timer(50, scheduler).subscribe(() => seen.push('never'))
    cancelled.unsubscribe()
    await clock.advance(1_000)
    expect(seen).toEqual(['0@100', '1@200', '2@300'])
    expect(clock.timers).toBe(0)
  })
})

describe('chance', () => {
  test('a seed and a label give the same draws, another label others, and forks do not disturb each other', () => {
    const draws = (random: { next(): number }) => Array.from({ length: 5 }, () => random.next())
    expect(draws(createSeededRandom(5).fork('a'))).toEqual(draws(createSeededRandom(5).fork('a')))
    expect(draws(createSeededRandom(5).fork('a'))).not.toEqual(draws(createSeededRandom(5).fork('b')))
    const parent = createSeededRandom(5)
    const fork = parent.fork('a')
    parent.next()
    expect(draws(fork)).toEqual(draws(createSeededRandom(5).fork('a')))
  })

  test('draws fill the interval evenly', () => {
    for (const random of [createSeededRandom(1), systemRandom]) {
      const tenths = new Array<number>(10).fill(0)
      for (let n = 0; n < 10_000; n++) {
        const tenth = Math.floor(random.next() * 10)
        tenths[tenth] = (tenths[tenth] ?? 0) + 1
      }
      expect(Math.min(...tenths)).toBeGreaterThan(800)
    }
  })

  test('bytes of the system are handed out once', () => {
    const drawn = Array.from({ length: 2_000 }, () => Buffer.from(systemRandom.bytes(8)).toString('hex'))
    expect(new Set(drawn).size).toBe(2_000)
    expect(systemRandom.bytes(100)).toHaveLength(100)
  })
})

describe('actors', () => {
  test('a machine with a placeholder left in it is not started', () => {
    const machine = setup({ actors: { load: external<number, undefined>('load') } }).createMachine({ id: 'm' })
    expect(missingActors(machine)).toEqual(['load'])
    expect(() => createRoot(machine, { clock: createVirtualClock() })).toThrow('m: not provided: load')
    const provided = machine.provide({ actors: { load: fromPromise<number, undefined>(async () => 1) } })
    expect(missingActors(provided)).toEqual([])
    createRoot(provided, { clock: createVirtualClock() }).start().stop()
  })

  test('a machine keeps our time', async () => {
    const clock = createVirtualClock()
    const machine = createMachine({ initial: 'a', states: { a: { after: { 1000: 'b' } }, b: { type: 'final' } } })
    const actor = createRoot(machine, { clock }).start()
    await clock.advance(999)
    expect(actor.getSnapshot().value).toBe('a')
    await clock.advance(1)
    expect(actor.getSnapshot().value).toBe('b')
  })

  test('what cannot be is a bug with its own name', () => {
    expect(() => assert(false, 'two and two is five')).toThrow(
      expect.objectContaining({ name: 'Impossible', message: 'two and two is five' }),
    )
  })
})
