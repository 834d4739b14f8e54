import { describe, expect, test } from 'vitest'
import { type AnyActorLogic, transition } from 'xstate'
import { job } from '../../machines/job.ts'
import { jobStates, readTable, stateAfter, step } from '../../src/jobs/transitions.ts'
import { reachableStates } from '../support/reachable.ts'

const rules = [
  ['SCHEDULED', 'claimed', 'RUNNING'],
  ['SCHEDULED', 'cancelled', 'CANCELLED'],
  ['RUNNING', 'renewed', 'RUNNING'],
  ['RUNNING', 'cancelRequested', 'RUNNING'],
  ['RUNNING', 'completed', 'COMPLETED'],
  ['RUNNING', 'failed', 'FAILED'],
  ['RUNNING', 'lost', 'FAILED'],
  ['RUNNING', 'cancelled', 'CANCELLED'],
  ['RUNNING', 'retried', 'SCHEDULED'],
  ['RUNNING', 'postponed', 'SCHEDULED'],
  ['RUNNING', 'released', 'SCHEDULED'],
  ['RUNNING', 'expired', 'SCHEDULED'],
  ['FAILED', 'redriven', 'SCHEDULED'],
  ['CANCELLED', 'redriven', 'SCHEDULED'],
] as const

describe('the job machine', () => {
  test.each(rules)('%s, when %s, becomes %s', (state, event, next) => {
    expect(transition(job, job.resolveState({ value: state }), { type: event })[0].value).toBe(next)
    expect(stateAfter(state, event)).toBe(next)
  })

  test('the table has these rules and no others', () => {
    const table = [...readTable()].flatMap(([state, steps]) => [...steps].map(([event, next]) => [state, event, next]))
    expect(table.toSorted()).toEqual(rules.map((rule) => [...rule]).toSorted())
  })

  test('every state can be reached', () => {
    const events = rules.map(([, type]) => ({ type }))
    expect(reachableStates(job as AnyActorLogic, undefined, events)).toEqual(new Set(jobStates))
  })

  test('a step that the machine does not know is a bug', () => {
    expect(stateAfter('COMPLETED', 'redriven')).toBeUndefined()
    expect(() => step('COMPLETED', 'claimed')).toThrow("a job that is COMPLETED cannot be 'claimed'")
  })
})
