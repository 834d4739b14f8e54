import { describe, expect, test } from 'vitest'
import { type AnyActorLogic, initialTransition, transition } from 'xstate'
import { worker } from '../../machines/worker.ts'
import { reachableStates } from '../support/reachable.ts'

const input = { drainGraceMs: 10 }
const graceOver = { type: 'xstate.after.drainGrace.worker.draining' }
const [polling] = initialTransition(worker, input)
const told = (...events: { type: string }[]) =>
  events.reduce((snapshot, event) => transition(worker, snapshot, event as never)[0], polling)
const [filled, freed, stop, stopNow, idle] = ['filled', 'freed', 'stop', 'stopNow', 'idle'].map((type) => ({
  type,
})) as [{ type: string }, { type: string }, { type: string }, { type: string }, { type: string }]

describe('the worker machine', () => {
  test.each([
    ['polls at first', [], 'polling'],
    ['does not claim while every slot is taken', [filled], 'saturated'],
    ['claims again when one is free', [filled, freed], 'polling'],
    ['drains when it is to stop', [stop], 'draining'],
    ['drains when it is to stop while saturated', [filled, stop], 'draining'],
    ['has stopped when nothing is left', [stop, idle], 'stopped'],
    ['tells what runs to stop when the grace is over', [stop, graceOver], 'signalling'],
    ['has stopped when that has ended', [stop, graceOver, idle], 'stopped'],
    ['L05 stops now when it is told twice', [stop, stop], 'halting'],
    ['L05 stops now when it is told again after the grace', [stop, graceOver, stop], 'halting'],
    ['stops now when it is told so', [stopNow], 'halting'],
    ['stops now when it is told so while saturated', [filled, stopNow], 'halting'],
    ['stops now when it is told so while draining', [stop, stopNow], 'halting'],
    ['stops now when it is told so after the grace', [stop, graceOver, stopNow], 'halting'],
    ['has stopped when what it killed is gone', [stopNow, idle], 'stopped'],
    ['is not idle before it is to stop', [idle], 'polling'],
  ])('%s', (_, events, state) => {
    expect(told(...events).value).toBe(state)
  })

  test('tags say what its driver may do', () => {
    expect(told().hasTag('claiming')).toBe(true)
    expect(told(filled).hasTag('claiming')).toBe(false)
    expect(told(filled).hasTag('taking')).toBe(true)
    expect(told(stop).hasTag('taking')).toBe(false)
    expect(told(stop, graceOver).hasTag('signalling')).toBe(true)
    expect(told(stopNow).hasTag('halting')).toBe(true)
  })

  test('every state can be reached', () => {
    const states = reachableStates(worker as AnyActorLogic, input, [filled, freed, stop, stopNow, idle, graceOver])
    expect(states).toEqual(new Set(['polling', 'saturated', 'draining', 'signalling', 'halting', 'stopped']))
  })
})
