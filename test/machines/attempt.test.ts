import { describe, expect, test } from 'vitest'
import { type AnyActorLogic, initialTransition, transition } from 'xstate'
import { type AttemptEvent, attempt } from '../../machines/attempt.ts'
import { wakeAt } from '../../machines/attempt-times.ts'
import { reachableStates } from '../support/reachable.ts'

const limits = { leaseMs: 60_000, heartbeatMs: 20_000, graceMs: 5_000, outputGraceMs: 2_000, timeoutMs: 100_000 }
const input = { limits, at: 0, beatAt: 20_000 }
const [starting] = initialTransition(attempt, input)
const told = (...events: AttemptEvent[]) =>
  events.reduce((snapshot, event) => transition(attempt, snapshot, event)[0], starting)

const tick = (at: number): AttemptEvent => ({ type: 'tick', at })
const started: AttemptEvent = { type: 'started', at: 0 }
const cancel: AttemptEvent = { type: 'cancel', at: 1_000 }
const drain: AttemptEvent = { type: 'drain', at: 1_000 }
const halt: AttemptEvent = { type: 'halt', at: 1_000 }
const claimLost: AttemptEvent = { type: 'claimLost', at: 1_000 }
const exited: AttemptEvent = { type: 'exited', at: 2_000, flowing: true }
const closed: AttemptEvent = { type: 'closed' }
const settled: AttemptEvent = { type: 'settled' }
const refused: AttemptEvent = { type: 'refused' }
const renewed = (sentAt: number): AttemptEvent => ({ type: 'renewed', sentAt })
const unheard = (at: number): AttemptEvent => ({ type: 'unheard', at, chance: 0 })

/** State and why it is being stopped. */
const place = (...events: AttemptEvent[]) => {
  const { value, context } = told(...events)
  return context.reason === undefined ? value : `${value}: ${context.reason}`
}

describe('the attempt machine', () => {
  test.each<[string, AttemptEvent[], string]>([
    ['starts', [], 'starting'],
    ['runs when the work has begun', [started], 'running'],
    ['settles work that could not begin', [closed], 'settling'],
    ['remembers a cancel until the work has begun', [cancel], 'starting: cancelled'],
    ['and stops it then', [cancel, started], 'terminating: cancelled'],
    ['remembers a drain until the work has begun', [drain, started], 'terminating: drained'],
    ['remembers a halt until the work has begun', [halt, started], 'killing: halted'],
    ['kills work that began when the claim was lost', [claimLost, started], 'killing: claimLost'],
    ['is lost if that work could not begin', [claimLost, closed], 'lost: claimLost'],
    ['a cancel does not hide a lost claim', [claimLost, cancel, halt], 'starting: claimLost'],
    ['is lost if the lease passed before the work began', [tick(59_000), started], 'killing: leaseLost'],
    ['is terminated when cancelled', [started, cancel], 'terminating: cancelled'],
    ['is terminated when the worker drains', [started, drain], 'terminating: drained'],
    ['is killed when the worker halts', [started, halt], 'killing: halted'],
    ['is killed at once when the claim is lost', [started, claimLost], 'killing: claimLost'],
    [
      'is terminated at its time limit',
      [started, tick(20_000), renewed(70_000), tick(100_000), tick(100_000)],
      'terminating: timeLimit',
    ],
    ['D09 an exit that was seen before the limit stands', [started, exited, tick(100_000)], 'settling'],
    ['is killed when the grace has passed', [started, cancel, tick(6_000)], 'killing: cancelled'],
    ['not a moment before', [started, cancel, tick(5_999)], 'terminating: cancelled'],
    ['is killed when the worker halts meanwhile', [started, cancel, halt], 'killing: halted'],
    ['is killed when the claim is lost meanwhile', [started, cancel, claimLost], 'killing: claimLost'],
    ['does not change its mind about why', [started, cancel, drain], 'terminating: cancelled'],
    [
      'keeps to being lost when the worker halts',
      [started, tick(20_000), unheard(20_000), tick(54_000), tick(54_000), halt],
      'killing: leaseLost',
    ],
    ['empties its pipes when the process has ended', [started, exited], 'emptying'],
    ['also when it was told to stop', [started, cancel, exited], 'emptying: cancelled'],
    ['also when it was killed', [started, halt, exited], 'emptying: halted'],
    ['settles when they are empty', [started, exited, closed], 'settling'],
    ['settles when the output grace has passed', [started, exited, tick(4_000)], 'settling'],
    ['not a moment before', [started, exited, tick(3_999)], 'emptying'],
    ['settles at once when the worker halts', [started, exited, halt], 'settling'],
    [
      'settles when the lease ends: the process is gone',
      [started, { ...exited, flowing: false }, tick(59_000)],
      'settling',
    ],
    ['is lost when the claim is lost while emptying', [started, exited, claimLost], 'lost: claimLost'],
    ['a handler needs no emptying', [started, closed], 'settling'],
    ['a handler that was told to stop neither', [started, cancel, closed], 'settling: cancelled'],
    ['is settled', [started, closed, settled], 'settled'],
    ['is lost when its end is refused', [started, closed, refused], 'lost'],
    ['I5 a heartbeat that is refused behind the settling changes nothing', [started, closed, claimLost], 'settling'],
    ['settles however long it takes', [started, closed, tick(600_000)], 'settling'],
    ['unless the worker drains', [started, closed, drain, tick(6_000)], 'lost'],
    ['or halts', [started, closed, halt, tick(2_000)], 'lost'],
    ['is lost when it was killed for its claim', [started, claimLost, exited], 'lost: claimLost'],
    ['is abandoned when it does not die', [started, halt, tick(11_000)], 'abandoned: halted'],
    ['and settled then', [started, halt, tick(11_000), closed], 'settling: halted'],
    ['or lost', [started, claimLost, tick(11_000), closed], 'lost: claimLost'],
    ['a late exit of what was abandoned counts', [started, halt, tick(11_000), exited], 'settling: halted'],
    ['a claim that is lost while it dies is lost', [started, halt, claimLost, exited], 'lost: claimLost'],
    [
      'a lease that ends while it dies is lost',
      [started, { type: 'halt', at: 58_999 }, tick(59_000), exited],
      'lost: leaseLost',
    ],
  ])('%s', (_, events, expected) => {
    expect(place(...events)).toBe(expected)
  })

  test('R0.22 a heartbeat is due at the pace of the job, in every state in which it is held', () => {
    const [patient] = initialTransition(attempt, { ...input, limits: { ...limits, graceMs: 100_000 } })
    const places: AttemptEvent[][] = [
      [],
      [started],
      [started, cancel],
      [started, { type: 'halt', at: 15_000 }],
      [started, { type: 'exited', at: 2_000, flowing: false }],
      [started, closed],
    ]
    for (const events of places) {
      const before = events.reduce((snapshot, event) => transition(attempt, snapshot, event)[0], patient)
      const [after] = transition(attempt, before, tick(20_000))
      expect([after.value, after.context.beat]).toEqual([before.value, 1])
    }
    const { context } = told(started, tick(20_000), renewed(20_000), tick(39_999), tick(40_000))
    expect(context.beat).toBe(2)
    expect(context.beatAt).toBe(60_000)
  })

  test('B09 one that fails is due again at once, the next ones ever more slowly', () => {
    const once = told(started, tick(20_000), unheard(20_100)).context
    expect(once.beatAt).toBe(20_100)
    const twice = told(started, tick(20_000), unheard(20_100), tick(20_100), unheard(20_200)).context
    expect(twice.beatAt).toBe(20_200 + 125)
    const thrice = transition(attempt, told(started, tick(20_000), unheard(1), unheard(2)), unheard(20_300))[0].context
    expect(thrice.beatAt).toBe(20_300 + 250)
    expect(told(started, tick(20_000), unheard(1), unheard(2), renewed(20_400)).context.missed).toBe(0)
  })

  test('I2 the lease counts from when the acknowledged heartbeat was sent, and never shrinks', () => {
    expect(told(started).context.leaseEndsAt).toBe(60_000)
    expect(told(started, renewed(20_000)).context.leaseEndsAt).toBe(80_000)
    expect(told(started, renewed(40_000), renewed(20_000)).context.leaseEndsAt).toBe(100_000)
  })

  test('I3 SIGTERM comes early enough for a grace before the lease ends, SIGKILL before it ends', () => {
    const failing = [started, tick(20_000), unheard(20_000)]
    expect(place(...failing, tick(53_999), tick(53_999))).toBe('running')
    expect(place(...failing, tick(54_000), tick(54_000))).toBe('terminating: leaseLost')
    expect(place(...failing, tick(54_000), tick(54_000), tick(58_999))).toBe('terminating: leaseLost')
    expect(place(...failing, tick(54_000), tick(54_000), tick(59_000))).toBe('killing: leaseLost')
    expect(place(started, tick(59_000))).toBe('killing: leaseLost')
    expect(told(...failing, tick(54_000), tick(54_000)).context.beatAt).toBeUndefined()
  })

  test('after a pause within the lease a heartbeat gets its chance before anything is stopped', () => {
    const paused = told(started, tick(56_000))
    expect(paused.value).toBe('running')
    expect(paused.context.beat).toBe(1)
    expect(transition(attempt, paused, tick(56_000))[0].value).toBe('running')
    expect(transition(attempt, paused, tick(57_000))[0].value).toBe('terminating')
    expect(transition(attempt, paused, renewed(56_000))[0].context.leaseEndsAt).toBe(116_000)
  })

  test('the time limit counts from the start of the work', () => {
    expect(told({ type: 'started', at: 7 }).context.limitAt).toBe(100_007)
    const [unlimited] = initialTransition(attempt, { ...input, limits: { ...limits, timeoutMs: undefined } })
    expect(transition(attempt, unlimited, started)[0].context.limitAt).toBeUndefined()
  })

  test('pipes are not cut while it is we who do not read, and have a fresh grace when we do again', () => {
    expect(told(started, { ...exited, flowing: false }).context.cutAt).toBeUndefined()
    expect(told(started, exited).context.cutAt).toBe(4_000)
    expect(told(started, exited, { type: 'held' }).context.cutAt).toBeUndefined()
    expect(told(started, exited, { type: 'held' }, { type: 'flowing', at: 9_000 }).context.cutAt).toBe(11_000)
  })

  test('others of the group have the rest of the grace when the leader is gone', () => {
    expect(told(started, cancel, { ...exited, at: 1_500 }).context.cutAt).toBe(6_000)
    expect(told(started, cancel, { ...exited, at: 5_500 }).context.cutAt).toBe(7_500)
  })

  test('the driver wakes for whatever is due next', () => {
    const next = (...events: AttemptEvent[]) => {
      const { context, value } = told(...events)
      return wakeAt(context, value)
    }
    expect(next(started)).toBe(20_000)
    expect(next(started, tick(20_000), renewed(20_000))).toBe(40_000)
    expect(next(started, cancel)).toBe(6_000)
    expect(next(started, cancel, tick(6_000))).toBe(16_000)
    expect(next(started, exited)).toBe(4_000)
    expect(next(started, closed)).toBe(20_000)
    expect(next(started, closed, halt)).toBe(2_000)
    expect(next(claimLost)).toBe(Number.POSITIVE_INFINITY)
    expect(next(started, tick(20_000), unheard(20_000), tick(53_000), tick(53_000))).toBe(54_000)
  })

  test('tags are what the outside may ask for', () => {
    expect(told(started, cancel).hasTag('terminating')).toBe(true)
    expect(told(started, halt).hasTag('killing')).toBe(true)
    expect(told(started, closed).hasTag('settling')).toBe(true)
    expect(told(started, closed, settled).hasTag('ended')).toBe(true)
    expect(told(started, closed, refused).hasTag('lost')).toBe(true)
  })

  test('every state can be reached', () => {
    const events = [started, cancel, halt, exited, closed, settled, refused, tick(6_000), tick(11_000), tick(59_000)]
    const states = reachableStates(attempt as AnyActorLogic, input, events)
    const names = 'starting running terminating killing abandoned emptying settling settled lost'.split(' ')
    expect(states).toEqual(new Set(names))
  })
})
