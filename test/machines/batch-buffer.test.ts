import { describe, expect, test } from 'vitest'
import { createActor, initialTransition, type SnapshotFrom, transition } from 'xstate'
import { type BufferEvent, type BufferLimits, batchBuffer } from '../../machines/batch-buffer.ts'
import { delayAfter } from '../../src/kernel/retry.ts'
import { createVirtualClock } from '../../src/sim/virtual-clock.ts'

type Snapshot = SnapshotFrom<typeof batchBuffer>

const limits: BufferLimits = { ageMs: 100, retry: { attemptsMax: 3, baseMs: 10, capMs: 1_000 } }

const given = (events: readonly BufferEvent[], input = limits): Snapshot =>
  events.reduce((snapshot: Snapshot, event) => transition(batchBuffer, snapshot, event)[0], fresh(input))
const fresh = (input = limits): Snapshot => initialTransition(batchBuffer, input)[0]

const opened: BufferEvent = { type: 'opened', at: 0 }
const sealed: BufferEvent = { type: 'sealed', trigger: 'count' }
const later: BufferEvent = { type: 'failed', retry: 'later', jitter: 0.5 }
const never: BufferEvent = { type: 'failed', retry: 'never', jitter: 0.5 }
const retry: BufferEvent = { type: 'retry' }
const drain: BufferEvent = { type: 'drain' }
const revoke: BufferEvent = { type: 'revoke' }
const none = { at: 1_000, waiting: undefined }
const next = { at: 1_000, waiting: 'bytes' } as const
const young = { at: 1_000, waiting: undefined, since: 970 }
const old = { at: 1_000, waiting: undefined, since: 900 }

describe('empty', () => {
  test('nothing is in flight at first', () => {
    expect(fresh()).toMatchObject({ value: 'empty', context: { flight: 0, failures: 0, draining: false } })
  })
  test('an opened batch collects, for its whole age', () => {
    expect(given([opened])).toMatchObject({ value: 'collecting', context: { waitMs: 100, flight: 0 } })
  })
  test('an opened batch that may not wait is due at once', () => {
    const due = given([opened], { ...limits, ageMs: 0 })
    expect(due.value).toBe('ripe')
    expect(due.hasTag('due')).toBe(true)
  })
  test('a batch that was sealed before it was announced takes off', () => {
    expect(given([sealed])).toMatchObject({ value: 'flushing', context: { flight: 1, trigger: 'count' } })
  })
  test('draining an empty buffer closes it', () => {
    expect(given([drain])).toMatchObject({ value: 'closed', status: 'done' })
  })
})

describe('collecting', () => {
  test('a sealed batch takes off', () => {
    expect(given([opened, sealed])).toMatchObject({ value: 'flushing', context: { flight: 1 } })
  })
  test('the age makes it due', () => {
    const clock = createVirtualClock()
    const actor = createActor(batchBuffer, { input: limits, clock }).start()
    actor.send(opened)
    clock.step()
    expect(clock.monotonic()).toBe(100)
    expect(actor.getSnapshot().hasTag('due')).toBe(true)
    actor.stop()
    expect(clock.timers).toBe(0)
  })
  test('a drain makes it due', () => {
    expect(given([opened, drain])).toMatchObject({ value: 'ripe', context: { draining: true } })
  })
  test('a second announcement changes nothing', () => {
    const collecting = given([opened])
    expect(transition(batchBuffer, collecting, opened)[0]).toBe(collecting)
  })
})

describe('ripe', () => {
  const ripe: readonly BufferEvent[] = [opened, drain]
  test('what was due takes off when it is sealed', () => {
    expect(given([...ripe, { type: 'sealed', trigger: 'drain' }])).toMatchObject({
      value: 'flushing',
      context: { flight: 1, trigger: 'drain' },
    })
  })
  test('a drain is remembered', () => {
    expect(given([opened, drain], { ...limits, ageMs: 0 })).toMatchObject({
      value: 'ripe',
      context: { draining: true },
    })
  })
})

describe('flushing', () => {
  test('the next sealed batch follows an acknowledgement with no event between', () => {
    expect(given([sealed, { type: 'acknowledged', ...next }])).toMatchObject({
      value: 'flushing',
      context: { flight: 2, trigger: 'bytes' },
    })
  })
  test('a sealed batch goes before an open one that is due', () => {
    expect(given([sealed, { type: 'acknowledged', ...old, waiting: 'count' }])).toMatchObject({ value: 'flushing' })
  })
  test('an open batch whose age is over is due at the acknowledgement', () => {
    expect(given([sealed, { type: 'acknowledged', ...old }])).toMatchObject({ value: 'ripe', context: { flight: 1 } })
  })
  test('an open batch collects for the rest of its age', () => {
    expect(given([sealed, { type: 'acknowledged', ...young }])).toMatchObject({
      value: 'collecting',
      context: { waitMs: 70 },
    })
  })
  test('the buffer is empty when nothing is left', () => {
    expect(given([sealed, { type: 'acknowledged', ...none }])).toMatchObject({ value: 'empty' })
  })
  test('a draining buffer does not wait for age', () => {
    expect(given([sealed, drain, { type: 'acknowledged', ...young }])).toMatchObject({ value: 'ripe' })
  })
  test('a draining buffer closes when nothing is left', () => {
    expect(given([sealed, drain, { type: 'acknowledged', ...none }])).toMatchObject({ value: 'closed', status: 'done' })
  })
  test('a draining buffer flushes the sealed ones first', () => {
    expect(given([sealed, drain, { type: 'acknowledged', ...next }])).toMatchObject({ value: 'flushing' })
  })
  test('a failure that may pass backs off', () => {
    const failing = given([sealed, later])
    expect(failing).toMatchObject({ value: 'backingOff', context: { failures: 1, waitMs: 5, flight: 1 } })
    expect(failing.hasTag('failing')).toBe(true)
    expect(failing.hasTag('stuck')).toBe(false)
  })
  test('a refusal is stuck at once', () => {
    const stuck = given([sealed, never])
    expect(stuck.value).toBe('stuck')
    expect(stuck.hasTag('stuck')).toBe(true)
    expect(stuck.hasTag('failing')).toBe(true)
  })
  test('a failure with no attempt left is stuck', () => {
    expect(given([sealed, later, retry, later, retry, later])).toMatchObject({
      value: 'stuck',
      context: { failures: 3 },
    })
  })
  test('nothing else takes off meanwhile', () => {
    const flushing = given([sealed])
    for (const event of [sealed, opened, retry, { type: 'discard', ...next }] as const) {
      expect(transition(batchBuffer, flushing, event)[0]).toBe(flushing)
    }
  })
})

describe('backingOff', () => {
  test('the same batch takes off again when the pause is over', () => {
    const clock = createVirtualClock()
    const actor = createActor(batchBuffer, { input: limits, clock }).start()
    actor.send(sealed)
    actor.send(later)
    clock.step()
    expect(clock.monotonic()).toBe(5)
    expect(actor.getSnapshot()).toMatchObject({
      value: 'flushing',
      context: { flight: 2, failures: 1, trigger: 'count' },
    })
    actor.stop()
  })
  test('the owner can have it tried at once; that does not forgive the failures', () => {
    expect(given([sealed, later, retry])).toMatchObject({ value: 'flushing', context: { flight: 2, failures: 1 } })
  })
  test('the owner can give up; the next batch starts with no failures', () => {
    expect(given([sealed, later, { type: 'discard', ...next }])).toMatchObject({
      value: 'flushing',
      context: { flight: 2, failures: 0, trigger: 'bytes' },
    })
    expect(given([sealed, later, { type: 'discard', ...young }])).toMatchObject({ value: 'collecting' })
    expect(given([sealed, later, { type: 'discard', ...none }])).toMatchObject({ value: 'empty' })
  })
  test('a drain waits for the outcome', () => {
    expect(given([sealed, later, drain])).toMatchObject({ value: 'backingOff', context: { draining: true } })
  })
  test('the pauses are those of the retry policy', () => {
    const patient = { ...limits, retry: { attemptsMax: 80, baseMs: 3, capMs: 5_000 } }
    let snapshot = given([sealed], patient)
    for (let failures = 1; failures < 79; failures++) {
      const jitter = (failures % 10) / 10
      snapshot = transition(batchBuffer, snapshot, { type: 'failed', retry: 'later', jitter })[0]
      expect(snapshot.context.waitMs).toBe(delayAfter(patient.retry, failures, jitter))
      snapshot = transition(batchBuffer, snapshot, retry)[0]
    }
  })
})

describe('stuck', () => {
  test('a retry by the owner counts afresh', () => {
    expect(given([sealed, never, retry])).toMatchObject({ value: 'flushing', context: { flight: 2, failures: 0 } })
  })
  test('a discard goes on with the next batch', () => {
    expect(given([sealed, never, { type: 'discard', ...next }])).toMatchObject({ value: 'flushing' })
    expect(given([sealed, never, { type: 'discard', ...old }])).toMatchObject({ value: 'ripe' })
    expect(given([sealed, never, { type: 'discard', ...none }])).toMatchObject({ value: 'empty' })
  })
  test('a drain waits for the owner', () => {
    expect(given([sealed, never, drain])).toMatchObject({ value: 'stuck', status: 'active' })
  })
  test('a discard ends the drain when nothing is left', () => {
    expect(given([sealed, never, drain, { type: 'discard', ...none }])).toMatchObject({ value: 'closed' })
  })
})

const pathTo: Record<string, readonly BufferEvent[]> = {
  empty: [],
  collecting: [opened],
  ripe: [opened, drain],
  flushing: [sealed],
  backingOff: [sealed, later],
  stuck: [sealed, never],
  closed: [drain],
  revoked: [revoke],
}

test('there is a path to every state', () => {
  expect(Object.keys(pathTo).sort()).toEqual(Object.keys(batchBuffer.states).sort())
  for (const [state, events] of Object.entries(pathTo)) expect(given(events).value).toBe(state)
})

test('a revoke ends every state that is not final', () => {
  for (const [state, events] of Object.entries(pathTo)) {
    const ended = given([...events, revoke])
    expect([ended.status, ended.value]).toEqual(['done', state === 'closed' ? 'closed' : 'revoked'])
  }
})
