import { expect, test } from 'vitest'
import { createTaskTokens } from '../../src/client/task-tokens.ts'
import { createVirtualClock } from '../../src/sim/virtual-clock.ts'

const hold = (jobId: string) => ({ jobId, queue: 'default', attempt: 1 })

test('C15 an answer that was overtaken does not bring an old token back', () => {
  const tokens = createTaskTokens(createVirtualClock())
  tokens.keep(hold('a'), 'first', { leaseMs: 60_000 })
  const early = tokens.show(hold('a'))
  const late = tokens.show(hold('a'))
  tokens.keep(hold('a'), 'newest', { use: late?.use ?? 0 })
  tokens.keep(hold('a'), 'older', { use: early?.use ?? 0 })
  expect(tokens.show(hold('a'))?.token).toBe('newest')
})

test('tokens of attempts that were given up without a word are forgotten when they have expired', async () => {
  const clock = createVirtualClock()
  const tokens = createTaskTokens(clock)
  tokens.keep(hold('a'), 'a', { leaseMs: 60_000 })
  tokens.keep(hold('b'), 'b', { leaseMs: 60_000 })
  await clock.advance(60_000)
  tokens.keep(hold('b'), 'renewed', { use: tokens.show(hold('b'))?.use ?? 0 })
  await clock.advance(10 * 60_000)
  tokens.keep(hold('c'), 'c', { leaseMs: 60_000 })
  expect(tokens.size).toBe(2)
  expect(tokens.show(hold('a'))).toBeUndefined()
  expect(tokens.show(hold('b'))?.token).toBe('renewed')
})
