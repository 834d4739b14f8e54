import { describe, expect, test } from 'vitest'
import { loadOptions } from '../../src/config/load.ts'
import { sleep } from '../../src/kernel/clock.ts'
import { createFaultyTables, type FaultRates } from '../../src/sim/faulty-tables.ts'
import { createSeededRandom } from '../../src/sim/seeded-random.ts'
import { createVirtualClock, settle } from '../../src/sim/virtual-clock.ts'
import { createMemoryTables } from '../../src/tables/memory.ts'
import type { Action, Lane, Tables, Verdict, Write } from '../../src/tables/port.ts'
import { createPersistence } from '../../src/write-behind/persist.ts'
import { contractSchemas, tablesContract } from '../contract/tables.ts'

const put = (id: string, n = 0): Action => ({ kind: 'put', table: 'things', row: { thing_id: id, n } })
const add = (id: string, by: number): Write => ({
  actions: [{ kind: 'update', table: 'things', key: [id], add: { n: by } }],
  lane: 'later',
  merge: true,
})
const write = (id: string, lane?: Lane): Write => (lane ? { actions: [put(id)], lane } : { actions: [put(id)] })

/** Tables that record each group and wait until the test lets it through. */
const gated = (inner: Tables, clock: ReturnType<typeof createVirtualClock>) => {
  const groups: (readonly Write[])[] = []
  const gates: (() => void)[] = []
  const tables: Tables = {
    ...inner,
    commit: async (writes) => {
      groups.push(writes)
      await new Promise<void>((resolve) => gates.push(resolve))
      return inner.commit(writes)
    },
  }
  const open = async () => {
    gates.shift()?.()
    await settle()
    await clock.advance(0)
  }
  return { tables, groups, open }
}

const setUp = (options: { rates?: FaultRates; writeBehind?: object; groups?: number } = {}) => {
  const clock = createVirtualClock()
  const random = createSeededRandom(3)
  const truth = createMemoryTables(contractSchemas)
  const inner = { ...truth, limits: { ...truth.limits, groups: options.groups ?? 1 } }
  const faulty = createFaultyTables({ clock, random: random.fork('faults') }, inner, options.rates)
  const gate = gated(faulty, clock)
  const writeBehind = loadOptions({ writeBehind: options.writeBehind ?? {} }).writeBehind
  const deps = { clock, random, emit: () => {} }
  return {
    clock,
    truth,
    faulty,
    gate,
    straight: createPersistence(deps, faulty, contractSchemas, writeBehind),
    stepwise: createPersistence(deps, gate.tables, contractSchemas, writeBehind),
  }
}

tablesContract('the persistence actor over memory', async () => {
  const { straight } = setUp()
  return { tables: straight, end: () => straight.close().catch(() => {}) }
})

tablesContract('the persistence actor over memory, several groups at once', async () => {
  const { straight } = setUp({ groups: 8 })
  return { tables: straight, end: () => straight.close().catch(() => {}) }
})

describe('the persistence actor', () => {
  test('a write leaves at once, and what comes meanwhile is the next group', async () => {
    const { stepwise, gate } = setUp()
    const first = stepwise.commit([write('a')])
    await settle()
    expect(gate.groups.map((group) => group.length)).toEqual([1])
    const rest = Promise.all(['b', 'c', 'd'].map((id) => stepwise.commit([write(id)])))
    await settle()
    expect(gate.groups).toHaveLength(1)
    await gate.open()
    expect((await first)[0]?.kind).toBe('done')
    expect(gate.groups.map((group) => group.length)).toEqual([1, 3])
    await gate.open()
    expect((await rest).flat().map((verdict) => verdict.kind)).toEqual(['done', 'done', 'done'])
    await stepwise.close()
  })

  test('L07 heartbeats and settles leave while bulk and rows are held up', async () => {
    const { stepwise, gate } = setUp()
    void stepwise.commit(Array.from({ length: 3_000 }, (_, n) => write(`log${n}`, 'log')))
    void stepwise.commit(Array.from({ length: 3_000 }, (_, n) => write(`row${n}`)))
    await settle()
    const beat = stepwise.commit([write('beat', 'urgent')])
    await settle()
    expect(gate.groups.at(-1)?.map(({ lane }) => lane)).toEqual(['urgent'])
    while (stepwise.held.row.writes + stepwise.held.log.writes + stepwise.held.urgent.writes > 0) await gate.open()
    expect((await beat)[0]?.kind).toBe('done')
    await stepwise.close()
  })

  test('L07 a flood of new jobs holds up nobody who takes one', async () => {
    const { stepwise, gate } = setUp()
    void stepwise.commit(Array.from({ length: 3_000 }, (_, n) => write(`new${n}`, 'intake')))
    await settle()
    const claim = stepwise.commit([write('claim')])
    await settle()
    expect(gate.groups.at(-1)).toEqual([write('claim')])
    while (stepwise.held.row.writes + stepwise.held.intake.writes > 0) await gate.open()
    expect((await claim)[0]?.kind).toBe('done')
    await stepwise.close()
  })

  test('L07 a caller that finds no room waits, and is told to come back after the limit', async () => {
    const { stepwise, gate, clock } = setUp({ writeBehind: { heldWrites: 2_000, admissionMs: 5_000 } })
    const verdicts: (readonly Verdict[])[] = []
    const crowd = Array.from({ length: 2_500 }, (_, n) => stepwise.commit([write(`w${n}`)]))
    for (const call of crowd) void call.then((verdict) => verdicts.push(verdict))
    await settle()
    await clock.advance(4_999)
    expect(verdicts).toEqual([])
    await clock.advance(1)
    await settle()
    const refused = verdicts.flat()
    expect(refused.length).toBeGreaterThan(0)
    expect(refused.every((verdict) => verdict.kind === 'failed' && verdict.fault.code === 'TABLE_THROTTLED')).toBe(true)
    expect(refused[0]).toMatchObject({ fault: { outcome: 'none', retryAfterMs: 5_000 } })
    const closed = stepwise.close()
    for (let rounds = 0; rounds < 10; rounds++) await gate.open()
    await closed
    const written = gate.groups.flat().length
    expect(written + refused.length).toBe(2_500)
    expect(clock.timers).toBe(0)
  })

  test('R4.3 R4.5 what nobody waits for is stored after a hundred or when its time has come', async () => {
    const { stepwise, gate, clock } = setUp()
    const own = Array.from({ length: 100 }, (_, n) => ({ ...write(`a${n}`, 'later') }))
    void stepwise.commit(own)
    await settle()
    expect(gate.groups.map((group) => group.length)).toEqual([100])
    await gate.open()
    void stepwise.commit([write('b', 'later')])
    await clock.advance(4_999)
    expect(gate.groups).toHaveLength(1)
    await clock.advance(1)
    expect(gate.groups.map((group) => group.length)).toEqual([100, 1])
    await gate.open()
    await stepwise.close()
  })

  test('R4.8 counters of one row become one write, and everybody gets its verdict', async () => {
    const { straight, truth, faulty } = setUp()
    let groups = 0
    const commit = (writes: readonly Write[]) => {
      groups += 1
      return faulty.commit(writes)
    }
    const counted = { ...faulty, commit }
    const clock = createVirtualClock()
    const persistence = createPersistence(
      { clock, random: createSeededRandom(1), emit: () => {} },
      counted,
      contractSchemas,
      loadOptions({}).writeBehind,
    )
    const calls = Array.from({ length: 99 }, () => persistence.commit([add('parent', 2)]))
    await persistence.close()
    const verdicts = (await Promise.all(calls)).flat()
    expect(verdicts.every((verdict) => verdict.kind === 'done')).toBe(true)
    expect(groups).toBe(1)
    expect(await truth.get('things', ['parent']).catch(() => 'closed')).toBe('closed')
    await straight.close()
  })

  test('conditional writes of different callers are never merged: each has its own verdict', async () => {
    const { straight } = setUp()
    const claim: Write = {
      actions: [{ kind: 'put', table: 'things', row: { thing_id: 'a' }, if: { test: 'absent' } }],
    }
    const verdicts = await Promise.all(Array.from({ length: 20 }, () => straight.commit([claim])))
    expect(verdicts.flat().filter((verdict) => verdict.kind === 'done')).toHaveLength(1)
    await straight.close()
  })

  test('a malformed write is refused alone, with its neighbours stored', async () => {
    const { straight, truth } = setUp()
    const good = ['a', 'b', 'c', 'd', 'e'].map((id) => straight.commit([write(id)]))
    const bad = straight.commit([{ actions: [put('x'), put('x')] }]).catch((error: Error) => error.message)
    expect((await Promise.all(good)).flat().every((verdict) => verdict.kind === 'done')).toBe(true)
    expect(await bad).toBe('two actions of one write on the same row')
    expect(await truth.get('things', ['x'])).toBeUndefined()
    await straight.close()
  })

  test('a group that does not come back has an unknown outcome after its deadline, and the lane goes on', async () => {
    const { stepwise, gate, clock } = setUp({ writeBehind: { flushDeadlineMs: 30_000 } })
    const hung = stepwise.commit([write('a')])
    await clock.advance(29_999)
    const next = stepwise.commit([write('b')])
    await clock.advance(1)
    expect((await hung)[0]).toMatchObject({ kind: 'failed', fault: { code: 'TABLE_UNAVAILABLE', outcome: 'unknown' } })
    await settle()
    expect(gate.groups).toHaveLength(2)
    await gate.open()
    await gate.open()
    expect((await next)[0]?.kind).toBe('done')
    await stepwise.close()
  })

  test('K10 on a disk that takes 5 s to flush, callers share a flush and signs of life get through', async () => {
    const { clock, truth } = setUp()
    let flushes = 0
    const slow: Tables = {
      ...truth,
      commit: async (writes) => {
        flushes += 1
        await sleep(clock, 5_000)
        return truth.commit(writes)
      },
    }
    const deps = { clock, random: createSeededRandom(1), emit: () => {} }
    const persistence = createPersistence(deps, slow, contractSchemas, loadOptions({}).writeBehind)
    const calls = Array.from({ length: 900 }, (_, n) => persistence.commit([write(`w${n}`)]))
    await clock.advance(1_000)
    const beats: number[] = []
    for (let beat = 0; beat < 5; beat++) {
      void persistence.commit([write(`beat${beat}`, 'urgent')]).then(() => beats.push(clock.monotonic()))
      await clock.advance(20_000)
    }
    expect(beats).toEqual([6_000, 26_000, 46_000, 66_000, 86_000])
    expect((await Promise.all(calls)).flat().every((verdict) => verdict.kind === 'done')).toBe(true)
    expect(flushes).toBe(1 + 5)
    const closed = persistence.close()
    await clock.advance(0)
    await closed
  })

  test('E4.2 what nobody waits for is tried again until it is stored, each write once', async () => {
    const { clock, truth, faulty, straight } = setUp()
    for (const kind of ['partial', 'throttled', 'partial', 'partial'] as const) faulty.inject(kind)
    const done: number[] = []
    for (let n = 0; n < 50; n++) {
      void straight
        .commit([{ actions: [{ kind: 'update', table: 'things', key: ['sum'], add: { n: 1 } }], lane: 'later' }])
        .then(() => done.push(n))
    }
    for (let rounds = 0; rounds < 200 && done.length < 50; rounds++) await clock.advance(1_000)
    expect(done).toHaveLength(50)
    expect(faulty.fired).toMatchObject({ partial: 3, throttled: 1 })
    expect((await truth.get('things', ['sum']))?.['n']).toBe(50)
    await straight.close()
  })

  test('R4.6 closing stores everything that was given before, and refuses what comes after', async () => {
    const { straight, truth } = setUp()
    const seen: string[] = []
    truth.watch('things', (changes) => seen.push(...changes.map(({ key }) => key[0])))
    void straight.commit(['a', 'b'].map((id) => write(id, 'later')))
    void straight.commit(['c', 'd'].map((id) => write(id, 'log')))
    void straight.commit([write('e')])
    const closed = straight.close()
    await expect(straight.commit([write('f')])).rejects.toMatchObject({ code: 'TABLE_CLOSED' })
    await closed
    await straight.close()
    expect(seen.toSorted()).toEqual(['a', 'b', 'c', 'd', 'e'])
  })

  test('writes on one row keep their order over many groups under way', async () => {
    const { straight, truth, clock } = setUp({ groups: 8, rates: { slow: 0.5 } })
    const calls: Promise<unknown>[] = []
    for (let n = 0; n < 300; n++) {
      const row = `r${n % 10}`
      const before = Math.floor(n / 10)
      const condition =
        before === 0 ? { test: 'absent' as const } : { test: '=' as const, attribute: 'n', value: before }
      calls.push(
        straight.commit([
          { actions: [{ kind: 'update', table: 'things', key: [row], set: { n: before + 1 }, if: condition }] },
        ]),
      )
    }
    let verdicts: unknown
    void Promise.all(calls).then((all) => {
      verdicts = all.flat()
    })
    for (let rounds = 0; rounds < 1_000 && !verdicts; rounds++) await clock.advance(1_000)
    expect((verdicts as Verdict[]).every((verdict) => verdict.kind === 'done')).toBe(true)
    expect((await truth.get('things', ['r3']))?.['n']).toBe(30)
    await straight.close()
  })
})
