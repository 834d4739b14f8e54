import { describe, expect, test } from 'vitest'
import { type AnyActorLogic, initialTransition, transition } from 'xstate'
import { sweeper } from '../../machines/sweeper.ts'
import { reachableStates } from '../support/reachable.ts'

const paused = { type: 'xstate.after.pause.sweeper.resting' } as never
const [resting] = initialTransition(sweeper, { pauseMs: 10 })
const told = (...events: { type: string }[]) =>
  events.reduce((snapshot, event) => transition(sweeper, snapshot, event as never)[0], resting)

describe('the sweeper machine', () => {
  test.each([
    ['rests at first', [], 'resting'],
    ['sweeps when the pause is over', [paused], 'sweeping'],
    ['sweeps when asked', [{ type: 'sweepNow' }], 'sweeping'],
    ['rests again when it has swept', [paused, { type: 'swept', pauseMs: 20 }], 'resting'],
    ['finishes the sweep under way when it is to stop', [paused, { type: 'stop' }], 'finishing'],
    ['stops when that sweep has ended', [paused, { type: 'stop' }, { type: 'swept', pauseMs: 20 }], 'stopped'],
    ['stops at once while resting', [{ type: 'stop' }], 'stopped'],
    ['ignores a second request to sweep', [paused, { type: 'sweepNow' }], 'sweeping'],
  ] as const)('%s', (_, events, state) => {
    expect(told(...(events as readonly { type: string }[])).value).toBe(state)
  })

  test('the next pause is the one that was drawn for it', () => {
    expect(told(paused, { type: 'swept', pauseMs: 20 } as never).context.pauseMs).toBe(20)
  })

  test('every state can be reached', () => {
    const events = [paused, { type: 'sweepNow' }, { type: 'stop' }, { type: 'swept', pauseMs: 10 }]
    const states = reachableStates(sweeper as AnyActorLogic, { pauseMs: 10 }, events)
    expect(states).toEqual(new Set(['resting', 'sweeping', 'finishing', 'stopped']))
  })
})
