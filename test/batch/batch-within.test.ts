import { of, Subject, take, throwError } from 'rxjs'
import { expect, test } from 'vitest'
import { type BatchWithinHooks, batchWithin } from '../../src/batch/batch-within.ts'
import type { Flushed } from '../../src/batch/flights.ts'
import type { BatchLimits } from '../../src/batch/limits.ts'
import { createSeededRandom } from '../../src/sim/seeded-random.ts'
import { createVirtualClock, settle } from '../../src/sim/virtual-clock.ts'
import { Refused, someLimits } from './rig.ts'

const aStream = (hooks: Partial<BatchWithinHooks<string>> = {}, limits: Partial<BatchLimits> = {}) => {
  const clock = createVirtualClock()
  const flushed: string[] = []
  const pending: { resolve(): void; reject(cause: unknown): void }[] = []
  const operator = batchWithin<string>(
    { clock, random: createSeededRandom('stream') },
    { ...someLimits, ...limits },
    {
      sizeOf: (item) => item.length,
      flush: ({ items }) => {
        flushed.push(items.join(' '))
        return new Promise((resolve, reject) => pending.push({ resolve, reject }))
      },
      ...hooks,
    },
  )
  const chunks$ = new Subject<readonly string[]>()
  const seen: string[] = []
  const observer = {
    next: ({ items, trigger }: Flushed<string>) => seen.push(`${items.join(' ')} (${trigger})`),
    error: (cause: Error) => seen.push(`error: ${cause.message}`),
    complete: () => seen.push('complete'),
  }
  const acknowledge = () => {
    pending.shift()?.resolve()
    return settle()
  }
  const fail = (cause: unknown) => {
    pending.shift()?.reject(cause)
    return settle()
  }
  return { clock, flushed, operator, chunks$, seen, observer, acknowledge, fail }
}

test('chunks become batches by time or count, whichever comes first, and reports come when acknowledged', async () => {
  const { chunks$, operator, observer, seen, acknowledge, clock, flushed } = aStream()
  const subscription = chunks$.pipe(operator).subscribe(observer)
  chunks$.next(['a', 'b', 'c', 'd'])
  await settle()
  expect(seen).toEqual([])
  await acknowledge()
  await clock.advance(100)
  await acknowledge()
  expect(seen).toEqual(['a b c (count)', 'd (age)'])
  expect(flushed).toEqual(['a b c', 'd'])
  subscription.unsubscribe()
  expect(clock.timers).toBe(0)
})

test('completion drains, then completes', async () => {
  const { operator, observer, seen, acknowledge, clock } = aStream()
  of(['a', 'b'], ['c', 'd']).pipe(operator).subscribe(observer)
  await acknowledge()
  await acknowledge()
  expect(seen).toEqual(['a b c (count)', 'd (drain)', 'complete'])
  expect(clock.timers).toBe(0)
})

test('an empty source completes without a flush', async () => {
  const { operator, observer, seen, flushed } = aStream()
  of([]).pipe(operator).subscribe(observer)
  await settle()
  expect(seen).toEqual(['complete'])
  expect(flushed).toEqual([])
})

test('an error of the source drains what was taken, then errors', async () => {
  const { chunks$, operator, observer, seen, acknowledge } = aStream()
  chunks$.pipe(operator).subscribe(observer)
  chunks$.next(['a'])
  chunks$.error(new Error('pipe broke'))
  await settle()
  expect(seen).toEqual([])
  await acknowledge()
  expect(seen).toEqual(['a (drain)', 'error: pipe broke'])

  const other = aStream()
  throwError(() => new Error('at once'))
    .pipe(other.operator)
    .subscribe(other.observer)
  await settle()
  expect(other.seen).toEqual(['error: at once'])
})

test('an unsubscribe revokes: nothing more is flushed or reported', async () => {
  const { chunks$, operator, observer, seen, acknowledge, clock, flushed } = aStream()
  const subscription = chunks$.pipe(operator).subscribe(observer)
  chunks$.next(['a', 'b', 'c', 'd', 'e', 'f', 'g'])
  subscription.unsubscribe()
  await acknowledge()
  await clock.advance(1_000)
  expect(seen).toEqual([])
  expect(flushed).toEqual(['a b c'])
  expect(clock.timers).toBe(0)
})

test('a downstream that has had enough revokes, though the next flush may be under way', async () => {
  const { operator, observer, seen, acknowledge, clock, flushed } = aStream()
  of(['a', 'b', 'c', 'd', 'e', 'f']).pipe(operator, take(1)).subscribe(observer)
  await acknowledge()
  await acknowledge()
  expect(seen).toEqual(['a b c (count)', 'complete'])
  expect(flushed).toEqual(['a b c', 'd e f'])
  expect(clock.timers).toBe(0)
})

test('the source is paused when somebody waits for room, and resumed when everybody is in', async () => {
  const calls: string[] = []
  const { chunks$, operator, observer, acknowledge, flushed } = aStream({
    pause: () => calls.push('pause'),
    resume: () => calls.push('resume'),
  })
  const subscription = chunks$.pipe(operator).subscribe(observer)
  chunks$.next([...'abcdef'])
  expect(calls).toEqual([])
  chunks$.next([...'ghijk'])
  chunks$.next(['l'])
  expect(calls).toEqual(['pause'])
  await acknowledge()
  expect(calls).toEqual(['pause'])
  await acknowledge()
  expect(calls).toEqual(['pause', 'resume'])
  await acknowledge()
  expect(flushed).toEqual(['a b c', 'd e f', 'g h i', 'j k l'])
  subscription.unsubscribe()
})

test('a batch that is stuck with nobody to answer ends the stream in its cause', async () => {
  const { chunks$, operator, observer, seen, fail, clock, flushed } = aStream()
  chunks$.pipe(operator).subscribe(observer)
  chunks$.next([...'abcdef'])
  await fail(new Refused('not yours'))
  expect(seen).toEqual(['error: not yours'])
  expect(flushed).toEqual(['a b c'])
  expect(clock.timers).toBe(0)
})

test('the answer to a stuck batch may take its time, and may fail', async () => {
  const answers = [
    () => Promise.resolve('retry' as const),
    () => 'discard' as const,
    () => Promise.reject(new Error('nobody knows')),
  ]
  const { chunks$, operator, observer, seen, fail, flushed } = aStream({
    stuck: () => (answers.shift() ?? (() => 'discard' as const))(),
  })
  chunks$.pipe(operator).subscribe(observer)
  chunks$.next([...'abcdef'])
  await fail(new Refused('not yours'))
  await fail(new Refused('not yours'))
  expect(flushed).toEqual(['a b c', 'a b c', 'd e f'])
  await fail(new Refused('not yours'))
  expect(seen).toEqual(['error: nobody knows'])
})

test('an item that cannot be measured ends the stream', async () => {
  const { chunks$, operator, observer, seen, clock } = aStream({ sizeOf: () => Number.NaN })
  chunks$.pipe(operator).subscribe(observer)
  chunks$.next(['a'])
  expect(seen).toEqual(['error: an item of NaN bytes'])
  expect(clock.timers).toBe(0)
  expect(chunks$.observed).toBe(false)
})
