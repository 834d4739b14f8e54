import { describe, expect, test } from 'vitest'
import { type AnyActorLogic, initialTransition, transition } from 'xstate'
import { server } from '../../machines/server.ts'
import { reachableStates } from '../support/reachable.ts'

const input = { drainMs: 10, farewellMs: 5 }
const drained = { type: 'xstate.after.drain.server.draining' }
const farewell = { type: 'xstate.after.farewell.server.closing' }
const stop = { type: 'stop' }
const idle = { type: 'idle' }
const released = { type: 'released' }
const [listening] = initialTransition(server, input)
const told = (...events: readonly { type: string }[]) =>
  events.reduce((snapshot, event) => transition(server, snapshot, event as never)[0], listening)

describe('the server machine', () => {
  test.each([
    ['listens at first', [], 'listening'],
    ['does not close because nobody calls', [idle], 'listening'],
    ['drains when it is to stop', [stop], 'draining'],
    ['goes on draining when it is told twice', [stop, stop], 'draining'],
    ['closes when the last call has ended', [stop, idle], 'closing'],
    ['closes when the calls take too long', [stop, drained], 'closing'],
    ['is closed when every connection is gone', [stop, idle, released], 'closed'],
    ['cuts connections that do not go', [stop, idle, farewell], 'cutting'],
    ['is closed when those are gone too', [stop, idle, farewell, released], 'closed'],
  ] as const)('%s', (_, events, state) => {
    expect(told(...events).value).toBe(state)
  })

  test('refuses new calls from the moment it is to stop', () => {
    expect(told().hasTag('refusing')).toBe(false)
    for (const events of [[stop], [stop, idle], [stop, idle, farewell], [stop, idle, released]]) {
      expect(told(...events).hasTag('refusing')).toBe(true)
    }
  })

  test('every state can be reached', () => {
    const states = reachableStates(server as AnyActorLogic, input, [stop, idle, released, drained, farewell])
    expect(states).toEqual(new Set(['listening', 'draining', 'closing', 'cutting', 'closed']))
  })
})
