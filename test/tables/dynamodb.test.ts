import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { ceilingAfter } from '../../src/kernel/retry.ts'
import type { Action, Verdict, Write } from '../../src/tables/port.ts'
import { cancelled, type DoubleCall, failure, ok, type Reply, times } from './dynamodb-double.ts'
import {
  callMs,
  deadlineMs,
  type Fixture,
  openFixture,
  put,
  putIfAbsent,
  retry,
  thing,
  upTo,
} from './dynamodb-fixture.ts'

let fixture: Fixture
beforeEach(async () => {
  fixture = await openFixture()
})
afterEach(() => fixture.end())

const throttled = failure('ThrottlingException')
const broken = failure('InternalServerError', {}, 500)
const item = (id: string) => ({ thing_id: { S: id } })
const transaction = [putIfAbsent(thing('a')), put(thing('b'))]

/** Lets the calls that hang run into their deadline, one after the other. */
const runOut = async (calls: number) => {
  for (const nth of upTo(calls)) {
    await fixture.double.received(nth + 1)
    await fixture.clock.advance(callMs)
  }
}

describe('writes of several actions', () => {
  test('A07 a transaction without an answer is sent again with the same token, and counts once', async () => {
    fixture.double.script('hang')
    const verdict = fixture.commit(...transaction)
    await runOut(1)
    expect(await verdict).toEqual({ kind: 'done' })
    const tokens = fixture.double.calls.map(({ input }) => input.ClientRequestToken)
    expect(tokens).toHaveLength(2)
    expect(new Set(tokens).size).toBe(1)
    await fixture.commit(...transaction)
    expect(fixture.double.calls[2]?.input.ClientRequestToken).not.toBe(tokens[0])
  })

  test('A07 a transaction that never gets an answer is reported as unknown', async () => {
    fixture.double.script(...times(retry.attemptsMax, broken))
    const verdict = await fixture.commit(...transaction)
    expect(verdict).toMatchObject({ kind: 'failed', fault: { code: 'TABLE_UNAVAILABLE', outcome: 'unknown' } })
    expect(fixture.double.calls).toHaveLength(retry.attemptsMax)
  })

  test('A07 a try that may have been written is not forgotten when the later ones certainly were not', async () => {
    fixture.double.script(broken, ...times(retry.attemptsMax, throttled))
    const verdict = await fixture.commit(...transaction)
    expect(verdict).toMatchObject({ kind: 'failed', fault: { code: 'TABLE_UNAVAILABLE', outcome: 'unknown' } })
  })

  test('A08 a service that throttles for minutes ends in a fault that says when to come back, with nothing written', async () => {
    fixture.double.script(...times(100, throttled))
    const verdict = await fixture.commit(...transaction)
    expect(verdict).toMatchObject({
      kind: 'failed',
      fault: { code: 'TABLE_THROTTLED', outcome: 'none', retry: 'later', retryAfterMs: retry.capMs },
    })
    expect(fixture.operations()).toEqual(Array.from({ length: retry.attemptsMax }, () => 'TransactWriteItems'))
  })

  test('A08 the deadline ends the tries where their number does not', async () => {
    const patient = await openFixture({ retry: { ...retry, attemptsMax: 10_000 } })
    patient.double.script(...times(10_000, throttled))
    const verdict = await patient.commit(...transaction)
    expect(verdict).toMatchObject({ kind: 'failed', fault: { code: 'TABLE_THROTTLED', outcome: 'none' } })
    expect(patient.clock.monotonic()).toBeGreaterThan(deadlineMs - retry.capMs)
    expect(patient.clock.monotonic()).toBeLessThan(deadlineMs)
    await patient.end()
  })

  test('the deadline of the whole ends a call that still has time of its own', async () => {
    const hurried = await openFixture({ deadlineMs: callMs / 4 })
    hurried.double.script('hang')
    const verdict = hurried.commit(...transaction)
    await hurried.double.received(1)
    await hurried.clock.advance(callMs / 4)
    expect(await verdict).toMatchObject({ kind: 'failed', fault: { code: 'TABLE_UNAVAILABLE', outcome: 'unknown' } })
    expect(hurried.clock.timers).toBe(0)
    await hurried.end()
  })

  test('A09 conflicts are retried after pauses with jitter, and never taken for a refusal', async () => {
    fixture.double.script(...times(4, cancelled({ Code: 'None' }, { Code: 'TransactionConflict' })))
    expect(await fixture.commit(...transaction)).toEqual({ kind: 'done' })
    const pauses = fixture.events.flatMap(({ retryInMs }) => retryInMs ?? [])
    expect(pauses).toHaveLength(4)
    expect(new Set(pauses).size).toBeGreaterThan(2)
    for (const [nth, pause] of pauses.entries()) expect(pause).toBeLessThan(ceilingAfter(retry, nth + 1))
  })

  test('A09 a storm of conflicts ends in a clear fault after the last try', async () => {
    fixture.double.script(...times(100, cancelled({ Code: 'TransactionConflict' }, { Code: 'None' })))
    const verdict = await fixture.commit(...transaction)
    expect(verdict).toMatchObject({
      kind: 'failed',
      fault: { code: 'TABLE_CONFLICT', outcome: 'none', retry: 'later' },
    })
    expect(fixture.double.calls).toHaveLength(retry.attemptsMax)
  })

  test('a condition that did not hold is a refusal that names its action and carries its row', async () => {
    const reason = { Code: 'ConditionalCheckFailed', Item: { ...item('b'), n: { N: '9' } } }
    fixture.double.script(cancelled({ Code: 'TransactionConflict' }, reason))
    expect(await fixture.commit(...transaction)).toEqual({ kind: 'refused', action: 1, row: thing('b', { n: 9 }) })
    fixture.double.script(cancelled({ Code: 'ConditionalCheckFailed' }, { Code: 'None' }))
    expect(await fixture.commit(...transaction)).toEqual({ kind: 'refused', action: 0, row: undefined })
  })

  test.each([
    ['ThrottlingError', 'TABLE_THROTTLED'],
    ['ProvisionedThroughputExceeded', 'TABLE_THROTTLED'],
    ['ItemCollectionSizeLimitExceeded', 'TABLE_LIMIT'],
    ['ValidationError', 'TABLE_REFUSED'],
  ])('a transaction cancelled by %s fails with %s', async (Code, code) => {
    fixture.double.script(...times(retry.attemptsMax, cancelled({ Code: 'TransactionConflict' }, { Code })))
    expect(await fixture.commit(...transaction)).toMatchObject({ kind: 'failed', fault: { code, outcome: 'none' } })
  })

  test('strangers never share a transaction', async () => {
    await fixture.tables.commit([{ actions: transaction }, { actions: [putIfAbsent(thing('c')), put(thing('d'))] }])
    expect(fixture.double.calls.map(({ input }) => input.TransactItems.length)).toEqual([2, 2])
  })
})

describe('writes of one action', () => {
  const update: Action = { kind: 'update', table: 'things', key: ['a'], set: { n: 1 } }
  const unsafe: readonly (readonly [string, Action])[] = [
    ['a conditional put', putIfAbsent(thing('a'))],
    ['a conditional delete', { kind: 'delete', table: 'things', key: ['a'], if: { test: 'present' } }],
    ['a conditional update', { ...update, if: { test: 'present' } }],
    ['an update that adds', { kind: 'update', table: 'things', key: ['a'], add: { n: 1 } }],
  ]
  const silent: readonly (readonly [string, Reply])[] = [
    ['an internal failure', broken],
    ['a service that is away', failure('ServiceUnavailable', {}, 503)],
    ['a socket that was cut', 'cut'],
    ['half an answer', 'half'],
    ['an answer that cannot be read', 'garbage'],
  ]
  const cases = unsafe.flatMap(([what, action]) => silent.map(([why, reply]) => [what, why, action, reply] as const))

  test.each(cases)('%s with %s is not sent again, and its outcome is unknown', async (_, __, action, reply) => {
    fixture.double.script(reply)
    const verdict = await fixture.commit(action)
    expect(verdict).toMatchObject({ kind: 'failed', fault: { code: 'TABLE_UNAVAILABLE', outcome: 'unknown' } })
    expect(fixture.double.calls).toHaveLength(1)
  })

  test('a conditional write without an answer ends by the deadline of its call, with the outcome unknown', async () => {
    fixture.double.script('hang')
    const verdict = fixture.commit(putIfAbsent(thing('a')))
    await runOut(1)
    expect(await verdict).toMatchObject({ kind: 'failed', fault: { code: 'TABLE_UNAVAILABLE', outcome: 'unknown' } })
    expect(fixture.double.calls).toHaveLength(1)
    expect(fixture.clock.timers).toBe(0)
  })

  test.each([throttled, failure('TransactionConflictException'), failure('ProvisionedThroughputExceededException')])(
    'what certainly was not written is sent again, condition or not (%#)',
    async (reply) => {
      fixture.double.script(reply, reply)
      expect(await fixture.commit(putIfAbsent(thing('a')))).toEqual({ kind: 'done', row: thing('a') })
      expect(fixture.operations()).toEqual(['PutItem', 'PutItem', 'PutItem'])
    },
  )

  test.each(silent)('an update that only sets may be sent again after %s', async (_, reply) => {
    fixture.double.script(reply, ok({ Attributes: { ...item('a'), n: { N: '1' } } }))
    expect(await fixture.commit(update)).toEqual({ kind: 'done', row: thing('a', { n: 1 }) })
  })

  test('a refused condition carries the row as it stood, or none', async () => {
    fixture.double.script(failure('ConditionalCheckFailedException', { Item: item('a') }))
    expect(await fixture.commit(putIfAbsent(thing('a')))).toEqual({ kind: 'refused', action: 0, row: thing('a') })
    fixture.double.script(failure('ConditionalCheckFailedException'))
    expect(await fixture.commit(putIfAbsent(thing('a')))).toEqual({ kind: 'refused', action: 0, row: undefined })
  })

  test.each([
    'AccessDeniedException',
    'UnrecognizedClientException',
    'ResourceNotFoundException',
    'ValidationException',
  ])('%s is final and certain', async (name) => {
    fixture.double.script(failure(name))
    const verdict = await fixture.commit(putIfAbsent(thing('a')))
    expect(verdict).toMatchObject({ kind: 'failed', fault: { code: 'TABLE_REFUSED', outcome: 'none', retry: 'never' } })
    expect((verdict as Verdict & { kind: 'failed' }).fault.cause).toMatchObject({ name })
    expect(fixture.double.calls).toHaveLength(1)
  })

  test('nobody listening means nothing was written', async () => {
    await fixture.double.close()
    const verdict = await fixture.commit(putIfAbsent(thing('a')))
    expect(verdict).toMatchObject({ kind: 'failed', fault: { code: 'TABLE_UNAVAILABLE', outcome: 'none' } })
    expect(fixture.events).toHaveLength(retry.attemptsMax)
    await fixture.tables.close()
    fixture = await openFixture()
  })

  test('no more calls are under way than there are sockets, and who waits too long has sent nothing', async () => {
    const narrow = await openFixture({ sockets: 2, deadlineMs: callMs })
    narrow.double.script('hang', 'hang')
    const verdicts = narrow.tables.commit(upTo(5).map((n) => ({ actions: [putIfAbsent(thing(`a${n}`))] })))
    await narrow.double.received(2)
    await narrow.clock.advance(callMs)
    const outcomes = (await verdicts).map((verdict) => verdict.kind === 'failed' && verdict.fault.outcome)
    expect(outcomes).toEqual(['unknown', 'unknown', 'none', 'none', 'none'])
    expect(narrow.double.busiest).toBe(2)
    expect(narrow.double.calls).toHaveLength(2)
    expect(await narrow.commit(putIfAbsent(thing('b')))).toEqual({ kind: 'done', row: thing('b') })
    await narrow.end()
  })
})

describe('batches', () => {
  const plain = (count: number): readonly Write[] => upTo(count).map((n) => ({ actions: [put(thing(`a${n}`))] }))
  const requests = ({ input }: DoubleCall) => input.RequestItems['millrace_things'] as readonly object[]
  const leave = (count: number) => (call: DoubleCall) =>
    ok({ UnprocessedItems: { millrace_things: requests(call).slice(-count) } })

  test('E01 throttling in mid flush is waited out, and writes of one row keep their order', async () => {
    fixture.double.script(throttled, throttled)
    const writes = [0, 1, 2].map((n): Write => ({ actions: [put(thing('a', { n }))] }))
    const verdicts = await fixture.tables.commit([...writes, ...plain(1)])
    expect(verdicts.map(({ kind }) => kind)).toEqual(['done', 'done', 'done', 'done'])
    const sent = fixture.double.calls.map((call) => JSON.stringify(requests(call)))
    expect(new Set(sent.slice(0, 3)).size).toBe(1)
    expect(sent.slice(2).map((text) => /"n":\{"N":"(\d)"/.exec(text)?.[1])).toEqual(['0', '1', '2'])
  })

  test('E02 only what was left over is sent again, and the batch is done when all of it is', async () => {
    fixture.double.script(leave(20), leave(7), leave(7))
    const verdicts = await fixture.tables.commit(plain(25))
    expect(verdicts.every(({ kind }) => kind === 'done')).toBe(true)
    expect(fixture.double.calls.map((call) => requests(call).length)).toEqual([25, 20, 7, 7])
    expect(requests(fixture.double.calls[3] as DoubleCall)).toEqual(
      requests(fixture.double.calls[0] as DoubleCall).slice(-7),
    )
  })

  test('E02 progress is not counted as failure: a batch may need more calls than a call has tries', async () => {
    fixture.double.script(...upTo(9).map((n) => leave(9 - n)))
    const verdicts = await fixture.tables.commit(plain(10))
    expect(verdicts.every(({ kind }) => kind === 'done')).toBe(true)
    expect(fixture.double.calls).toHaveLength(10)
  })

  test('E02 what is left over to the end fails alone', async () => {
    fixture.double.script(...upTo(retry.attemptsMax + 1).map(() => leave(2)))
    const verdicts = await fixture.tables.commit(plain(4))
    expect(verdicts).toMatchObject([
      { kind: 'done', row: thing('a0') },
      { kind: 'done', row: thing('a1') },
      { kind: 'failed', fault: { code: 'TABLE_THROTTLED', outcome: 'none' } },
      { kind: 'failed', fault: { code: 'TABLE_THROTTLED', outcome: 'none' } },
    ])
  })

  test('a batch without an answer is sent again: a put twice is a put', async () => {
    fixture.double.script('hang', 'cut')
    const verdicts = fixture.tables.commit(plain(2))
    await runOut(1)
    expect((await verdicts).map(({ kind }) => kind)).toEqual(['done', 'done'])
    expect(fixture.operations()).toEqual(['BatchWriteItem', 'BatchWriteItem', 'BatchWriteItem'])
  })

  test('a row that the service refuses spoils its own verdict only', async () => {
    const refuseA1 = (call: DoubleCall) =>
      JSON.stringify(call.input).includes('"a1"') ? failure('ValidationException') : ok()
    fixture.double.script(refuseA1, refuseA1, refuseA1, refuseA1)
    const verdicts = await fixture.tables.commit(plain(3))
    expect(verdicts.map(({ kind }) => kind)).toEqual(['done', 'failed', 'done'])
  })

  test('a refused write in the middle of a row’s order does not stop the later ones', async () => {
    fixture.double.script(failure('ConditionalCheckFailedException', { Item: item('a') }))
    const writes: readonly Write[] = [{ actions: [putIfAbsent(thing('a'))] }, { actions: [put(thing('a', { n: 2 }))] }]
    expect((await fixture.tables.commit(writes)).map(({ kind }) => kind)).toEqual(['refused', 'done'])
    expect(fixture.operations()).toEqual(['PutItem', 'BatchWriteItem'])
  })
})

describe('reads', () => {
  test('a read without an answer is made again, and has certainly written nothing', async () => {
    fixture.double.script('hang', broken, ok({ Item: item('a') }))
    const row = fixture.tables.get('things', ['a'])
    await runOut(1)
    expect(await row).toEqual(thing('a'))
    fixture.double.script(...times(retry.attemptsMax, broken))
    await expect(fixture.tables.get('things', ['a'])).rejects.toMatchObject({
      code: 'TABLE_UNAVAILABLE',
      outcome: 'none',
    })
  })

  test('getMany asks again for the keys left over, and only for those', async () => {
    const Keys = [item('b')]
    fixture.double.script(
      ok({ Responses: { millrace_things: [item('a')] }, UnprocessedKeys: { millrace_things: { Keys } } }),
      ok({ Responses: { millrace_things: [item('b')] } }),
    )
    const rows = await fixture.tables.getMany('things', [['b'], ['a'], ['b'], ['c']])
    expect(rows).toEqual([thing('b'), thing('a'), thing('b'), undefined])
    expect(fixture.double.calls.map(({ input }) => input.RequestItems.millrace_things)).toEqual([
      { Keys: [item('b'), item('a'), item('c')], ConsistentRead: true },
      { Keys, ConsistentRead: true },
    ])
  })

  test('a range that ends before it begins is empty and costs no call', async () => {
    expect(await fixture.tables.query('lines', { partition: 'a', from: 3, to: 2, limit: 5 })).toEqual({ entries: [] })
    expect(await fixture.tables.query('slots', { partition: 'a', from: 'b', to: 'a', limit: 5 })).toEqual({
      entries: [],
    })
    expect(fixture.double.calls).toEqual([])
  })

  test('a cursor that is none is a bug', async () => {
    const range = { partition: 'a', limit: 5, after: 'no cursor' }
    await expect(fixture.tables.query('lines', range)).rejects.toThrow('no cursor')
  })
})

describe('the whole', () => {
  test('each call is reported with its operation, outcome, units and pause', async () => {
    fixture.double.script(throttled, ok({ ConsumedCapacity: { TableName: 'x', CapacityUnits: 2.5 } }))
    await fixture.commit(putIfAbsent(thing('a')))
    expect(fixture.events).toMatchObject([
      { operation: 'PutItem', outcome: 'TABLE_THROTTLED', units: 0, retryInMs: expect.any(Number) },
      { operation: 'PutItem', outcome: 'done', units: 2.5 },
    ])
  })

  test('close waits for what is under way', async () => {
    fixture.double.script('hang')
    const row = fixture.tables.get('things', ['a'])
    await fixture.double.received(1)
    const closed = fixture.tables.close()
    await expect(fixture.tables.get('things', ['a'])).rejects.toMatchObject({ code: 'TABLE_CLOSED' })
    fixture.double.release()
    expect(await row).toBeUndefined()
    await closed
    expect(fixture.double.calls).toHaveLength(1)
  })
})

describe('credentials', () => {
  test('B13 that expire in mid run are fetched anew: the call is repeated, and nothing is lost', async () => {
    fixture.double.script(failure('ExpiredTokenException'), failure('ExpiredTokenException'))
    const verdict = fixture.commit(put(thing('a')))
    await fixture.double.received(1)
    await fixture.clock.advance(retry.capMs)
    await fixture.double.received(2)
    await fixture.clock.advance(retry.capMs)
    expect(await verdict).toMatchObject({ kind: 'done' })
    expect(fixture.double.calls).toHaveLength(3)
  })

  test('B13 that stay expired are a fault that passes and says that nothing was written', async () => {
    fixture.double.script(...times(retry.attemptsMax, failure('ExpiredTokenException')))
    const verdict = fixture.commit(put(thing('a')))
    for (const nth of upTo(retry.attemptsMax)) {
      await fixture.double.received(nth + 1)
      await fixture.clock.advance(retry.capMs)
    }
    expect(await verdict).toMatchObject({ kind: 'failed', fault: { code: 'TABLE_UNAVAILABLE', outcome: 'none' } })
  })
})
