import { describe, expect, test } from 'vitest'
import { type AnyActorLogic, initialTransition, transition } from 'xstate'
import { directoryContact } from '../../machines/directory-contact.ts'
import { reachableStates } from '../support/reachable.ts'

const input = { patienceMs: 5_000, pauseMs: 100 }
const paused = { type: 'xstate.after.pause.directoryContact.waiting' }
const silent = (waitedMs: number) => ({ type: 'silent', waitedMs })
const [opening] = initialTransition(directoryContact, input)
const told = (...events: readonly { type: string }[]) =>
  events.reduce((snapshot, event) => transition(directoryContact, snapshot, event as never)[0], opening)

const held = { type: 'held' }
const answered = { type: 'answered' }
const vanished = { type: 'vanished' }
const leave = { type: 'leave' }

describe('the contact to a data directory', () => {
  test.each([
    ['tries to open it first', [], 'opening'],
    ['has it when it is free', [{ type: 'opened' }], 'holding'],
    ['asks the holder when it is held', [held], 'connecting'],
    ['works with a holder that answers', [held, answered], 'visiting'],
    ['waits for one that does not answer yet', [held, silent(0)], 'waiting'],
    ['tries the directory again after a pause', [held, silent(0), paused], 'opening'],
    ['is patient up to a point', [held, silent(4_999)], 'waiting'],
    ['gives up at that point', [held, silent(5_000)], 'givenUp'],
    ['begins anew when the holder vanishes', [held, answered, vanished], 'opening'],
    ['takes the directory that a holder left', [held, answered, vanished, { type: 'opened' }], 'holding'],
    ['leaves while it waits', [held, silent(0), leave], 'left'],
    ['leaves a holder', [held, answered, leave], 'left'],
    ['ignores the end of a holder that it does not work with', [vanished], 'opening'],
  ] as const)('%s', (_, events, state) => {
    expect(told(...events).value).toBe(state)
  })

  test('the outside asks whether it is settled', () => {
    expect(told(held, answered).hasTag('settled')).toBe(true)
    expect(told({ type: 'opened' }).hasTag('settled')).toBe(true)
    expect(told(held, silent(9_000)).hasTag('settled')).toBe(true)
    expect(told(held).hasTag('settled')).toBe(false)
  })

  test('every state can be reached', () => {
    const events = [{ type: 'opened' }, held, answered, silent(0), silent(9_000), leave, paused]
    const states = reachableStates(directoryContact as AnyActorLogic, input, events)
    expect(states).toEqual(new Set(['opening', 'connecting', 'waiting', 'visiting', 'holding', 'givenUp', 'left']))
  })
})
