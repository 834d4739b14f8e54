import { describe, expect, test } from 'vitest'
import { type AnyActorLogic, initialTransition, transition } from 'xstate'
import { type FollowEvent, follow } from '../../machines/follow.ts'
import { reachableStates } from '../support/reachable.ts'

const input = { attempt: 1, sequence: 0 }
const [seeking] = initialTransition(follow, input)
const told = (...events: readonly FollowEvent[]) =>
  events.reduce((snapshot, event) => transition(follow, snapshot, event)[0], seeking)

const found: FollowEvent = { type: 'found', attempt: 2, sequence: 0 }
const caughtUp: FollowEvent = { type: 'caughtUp', attempt: 2, sequence: 7 }
const gapMet: FollowEvent = { type: 'gapMet', attempt: 2, sequence: 5 }
const woken: FollowEvent = { type: 'woken' }
const attemptEnded: FollowEvent = { type: 'attemptEnded', attempt: 2, sequence: 9 }
const jobEnded: FollowEvent = { type: 'jobEnded' }
const leave: FollowEvent = { type: 'leave' }
const failed: FollowEvent = { type: 'failed' }

describe('the follow machine', () => {
  test.each([
    ['seeks its attempt at first', [], 'seeking'],
    ['reads when the attempt is there', [found], 'reading'],
    ['waits when it has everything', [found, caughtUp], 'waiting'],
    ['reads again when it is woken', [found, caughtUp, woken], 'reading'],
    ['halts before a gap', [found, gapMet], 'halted'],
    ['looks again at the gap when it is woken', [found, gapMet, woken], 'reading'],
    ['seeks the next attempt when one has ended', [found, attemptEnded], 'seeking'],
    ['ends with the job', [found, attemptEnded, jobEnded], 'ended'],
    ['ends with a job that never ran', [jobEnded], 'ended'],
    ['does not end while an attempt is being read', [found, jobEnded], 'reading'],
    ['does not end while it waits', [found, caughtUp, jobEnded], 'waiting'],
    ['may be left while it seeks', [leave], 'left'],
    ['may be left while it reads', [found, leave], 'left'],
    ['may be left while it waits', [found, caughtUp, leave], 'left'],
    ['may be left before a gap', [found, gapMet, leave], 'left'],
    ['is lost if the store stays out of reach while it seeks', [failed], 'lost'],
    ['is lost if the store stays out of reach while it reads', [found, failed], 'lost'],
    ['is lost if the store stays out of reach while it waits', [found, caughtUp, failed], 'lost'],
    ['is lost if the store stays out of reach before a gap', [found, gapMet, failed], 'lost'],
    ['stays ended', [jobEnded, leave], 'ended'],
  ] as const)('%s', (_, events, state) => {
    expect(told(...(events as readonly FollowEvent[])).value).toBe(state)
  })

  test('it knows where the cursor stands', () => {
    expect(told().context).toEqual({ attempt: 1, sequence: 0 })
    expect(told(found, caughtUp).context).toEqual({ attempt: 2, sequence: 7 })
    expect(told(found, gapMet, woken).context).toEqual({ attempt: 2, sequence: 5 })
    expect(told(found, attemptEnded).context).toEqual({ attempt: 2, sequence: 9 })
  })

  test('tags say who is idle and who is over', () => {
    expect(told().hasTag('idle')).toBe(true)
    expect(told(found).hasTag('idle')).toBe(false)
    expect(told(found, caughtUp).hasTag('idle')).toBe(true)
    expect(told(found, gapMet).hasTag('idle')).toBe(true)
    expect(told(leave).hasTag('over')).toBe(true)
  })

  test('every state can be reached', () => {
    const events = [found, caughtUp, gapMet, woken, attemptEnded, jobEnded, leave, failed]
    expect(reachableStates(follow as AnyActorLogic, input, events)).toEqual(
      new Set(['seeking', 'reading', 'waiting', 'halted', 'ended', 'left', 'lost']),
    )
  })
})
