import { describe, expect, test } from 'vitest'
import { logId } from '../../src/log/keys.ts'
import { aBatch, aFollowRig, anEnd, aStart, jobId, range, settle, Unknown } from './follow-rig.ts'

describe('a live log', () => {
  test('G04 replay goes over into live without a gap and without a repeat, whatever arrives when', async () => {
    const rig = aFollowRig({ slow: 0.5, slowMs: 500 })
    await rig.publish([aStart(), aBatch(2, 3)])
    const view = rig.follow()
    for (let sequence = 5; sequence < 105; sequence += 5) {
      await rig.publish([aBatch(sequence, 5)])
      await rig.clock.advance(sequence % 3 === 0 ? 100 : 0)
    }
    await rig.publish([anEnd(105)])
    rig.set({ state: 'COMPLETED', result: 42 })
    rig.tell()
    await rig.clock.advance(10_000)
    expect(view.said()).toEqual([...range(1, 105), '1 attemptEnded 105 true', '1 jobEnded COMPLETED 42'])
    expect(view.state).toEqual({ ended: true, fault: undefined })
    expect(rig.clock.timers).toBe(0)
    expect(rig.tails.size()).toBe(0)
  })

  test('a follower that has everything is woken by what is stored here, and reads nothing for it', async () => {
    const rig = aFollowRig()
    await rig.publish([aStart()])
    const view = rig.follow()
    await settle()
    const before = rig.reads.length
    await rig.publish([aBatch(2, 5)])
    await settle()
    await rig.publish([aBatch(7, 5)])
    await settle()
    expect(view.said()).toEqual(range(1, 11))
    expect(rig.reads).toHaveLength(before)
    view.abort.abort()
    await settle()
    expect(view.state.ended).toBe(true)
    expect(rig.clock.timers).toBe(0)
  })

  test('what another process stores is found by looking, soon at first and less often when nothing comes', async () => {
    const rig = aFollowRig()
    await rig.store([aStart()])
    const view = rig.follow()
    await settle()
    await rig.store([aBatch(2, 5)])
    await rig.clock.advance(200)
    expect(view.said()).toEqual(range(1, 6))
    await rig.clock.advance(60_000)
    const before = rig.reads.length
    await rig.clock.advance(20_000)
    expect(rig.reads.length - before).toBeLessThanOrEqual(10)
    expect(rig.reads.length - before).toBeGreaterThanOrEqual(8)
    await rig.store([aBatch(7, 1)])
    await rig.clock.advance(2_000)
    expect(view.said().filter((said) => said.startsWith('1:'))).toEqual(range(1, 7))
    view.abort.abort()
    await settle()
    expect(rig.clock.timers).toBe(0)
  })

  test('G10 ten thousand followers of one job cost one look at a time, and no read per follower', async () => {
    const rig = aFollowRig()
    await rig.store([aStart()])
    const views = Array.from({ length: 10_000 }, () => rig.follow())
    await settle()
    await settle()
    expect(rig.tails.size()).toBe(1)
    expect(rig.watches).toHaveLength(1)
    const [reads, looks] = [rig.reads.length, rig.looks.length]
    await rig.store([aBatch(2, 50)])
    await rig.clock.advance(200)
    await rig.store([anEnd(52)])
    rig.set({ state: 'COMPLETED' })
    await rig.clock.advance(200)
    await settle()
    expect(new Set(views.map((view) => view.said().join()))).toEqual(
      new Set([[...range(1, 52), '1 attemptEnded 52 true', '1 jobEnded COMPLETED'].join()]),
    )
    expect(rig.reads.length - reads).toBeLessThanOrEqual(6)
    expect(rig.looks.length - looks).toBeLessThanOrEqual(6)
    expect(rig.clock.timers).toBe(0)
  }, 60_000)

  test('G01 a slow reader reads later, from the store, and holds nothing up', async () => {
    const rig = aFollowRig()
    await rig.publish([aStart()])
    const slow = rig.follower.follow({ jobId, noFollow: false })
    expect((await slow.next()).value).toMatchObject({ item: { sequence: 1 } })
    // Far more than a tail keeps.
    for (let sequence = 2; sequence < 100; sequence++) {
      await rig.publish([{ ...aBatch(sequence, 1), payload: new Uint8Array(100_000), crc: 0 }])
    }
    expect(rig.tails.size()).toBe(1)
    // What it is given now comes from the store: only there the checksums are looked at.
    expect((await slow.next()).value).toMatchObject({ marker: { kind: 'damaged', from: 2 } })
    await slow.return()
    expect(rig.tails.size()).toBe(0)
  })

  test('G11 a quiet stream says every 15 seconds that it is alive', async () => {
    const rig = aFollowRig()
    await rig.publish([aStart()])
    const view = rig.follow()
    await rig.clock.advance(14_999)
    expect(view.said()).toEqual(['1:1'])
    await rig.clock.advance(30_001)
    expect(view.said()).toEqual(['1:1', '1 keepAlive', '1 keepAlive', '1 keepAlive'])
    rig.set({ state: 'CANCELLED' })
    await rig.publish([anEnd(2)])
    await rig.clock.advance(5_000)
    expect(view.said().slice(4)).toEqual(['1:2', '1 attemptEnded 2 true', '1 jobEnded CANCELLED'])
  })

  test('the job is marked as watched at once and every 30 seconds, as long as somebody follows', async () => {
    const rig = aFollowRig()
    const [one, two] = [rig.follow(), rig.follow()]
    await rig.clock.advance(70_000)
    expect(rig.watches.map(({ at }) => at)).toEqual([0, 30_000, 60_000])
    one.abort.abort()
    await rig.clock.advance(30_000)
    expect(rig.watches).toHaveLength(4)
    two.abort.abort()
    await rig.clock.advance(60_000)
    expect(rig.watches).toHaveLength(4)
    expect(rig.clock.timers).toBe(0)
  })

  test('G13 a reader that throws ends only its own stream', async () => {
    const rig = aFollowRig()
    await rig.publish([aStart()])
    const other = rig.follow()
    const thrown = (async () => {
      for await (const _ of rig.follower.follow({ jobId })) throw new TypeError('in the callback')
    })()
    await expect(thrown).rejects.toBeInstanceOf(TypeError)
    await rig.publish([aBatch(2, 2)])
    await settle()
    expect(other.said()).toEqual(range(1, 3))
    other.abort.abort()
    await settle()
    expect(rig.tails.size()).toBe(0)
  })

  test('a store that is out of reach for a while delays a stream and does not end it', async () => {
    const rig = aFollowRig({ readFailed: 0.4 })
    const view = rig.follow()
    for (let sequence = 1; sequence <= 20; sequence++) {
      await rig.store([aBatch(sequence, 1)])
      await rig.clock.advance(500)
    }
    rig.set({ state: 'FAILED', error: 'worker lost' })
    await rig.clock.advance(60_000)
    expect(view.state).toEqual({ ended: true, fault: undefined })
    expect(view.said().filter((said) => !said.includes('keepAlive'))).toEqual([
      ...range(1, 20),
      '1 attemptEnded 20 false',
      '1 jobEnded FAILED worker lost',
    ])
  })
})

describe('gaps', () => {
  test('E12 E13 a reader does not pass a gap while it may still be filled, and goes on when it is', async () => {
    const rig = aFollowRig()
    await rig.store([aStart(), aBatch(5, 2)])
    const view = rig.follow()
    await rig.clock.advance(10_000)
    expect(view.said()).toEqual(['1:1'])
    await rig.store([aBatch(2, 3)])
    await rig.clock.advance(2_000)
    expect(view.said()).toEqual(range(1, 6))
    view.abort.abort()
    await settle()
    expect(rig.clock.timers).toBe(0)
  })

  test('E12 the same when the writer is in this process', async () => {
    const rig = aFollowRig()
    await rig.publish([aStart(), aBatch(5, 2)])
    const view = rig.follow()
    await settle()
    expect(view.said()).toEqual(['1:1'])
    await rig.publish([aBatch(2, 3)])
    await settle()
    expect(view.said()).toEqual(range(1, 4))
    // What stood behind the gap was never offered; the next look finds it.
    await rig.clock.advance(2_000)
    expect(view.said()).toEqual(range(1, 6))
    view.abort.abort()
  })

  test('E13 a gap that nobody will fill is reported when the attempt has ended', async () => {
    const rig = aFollowRig()
    await rig.store([aStart(), aBatch(5, 2), aBatch(9, 1)])
    const view = rig.follow()
    await rig.clock.advance(1_000)
    rig.set({ state: 'SCHEDULED' })
    await rig.clock.advance(2_000)
    expect(view.said()).toEqual([
      '1:1',
      '1 missing 2 4',
      ...range(5, 6),
      '1 missing 7 8',
      '1:9',
      '1 attemptEnded 9 false',
    ])
    view.abort.abort()
  })

  test('E13 the beginning of a log can be missing too', async () => {
    const rig = aFollowRig()
    await rig.store([aBatch(3, 2, rig.clock.now())])
    rig.set({ state: 'FAILED' })
    const view = rig.follow()
    await rig.clock.advance(0)
    expect(view.said()).toEqual(['1 missing 1 2', ...range(3, 4), '1 attemptEnded 4 false', '1 jobEnded FAILED'])
  })

  test('E14 what was stored just before the end is read before the end is told', async () => {
    const rig = aFollowRig()
    await rig.publish([aStart()])
    const view = rig.follow()
    await settle()
    // Stored, but not offered: the process died before it could.
    await rig.store([aBatch(2, 4)])
    rig.set({ state: 'SCHEDULED' })
    rig.tell()
    await rig.clock.advance(0)
    expect(view.said()).toEqual([...range(1, 5), '1 attemptEnded 5 false'])
    view.abort.abort()
  })
})

describe('attempts', () => {
  test('G08 a new attempt is told, and its sequences begin anew', async () => {
    const rig = aFollowRig()
    await rig.publish([aStart(), aBatch(2, 2)])
    const view = rig.follow()
    await settle()
    rig.set({ state: 'RUNNING', attempt: 2 })
    await rig.publish([aStart()], 2)
    rig.tell()
    await settle()
    await rig.publish([aBatch(2, 1), anEnd(3)], 2)
    await settle()
    rig.set({ state: 'COMPLETED' })
    await rig.clock.advance(5_000)
    expect(view.said()).toEqual([
      ...range(1, 3),
      '1 attemptEnded 3 false',
      ...range(1, 3, 2),
      '2 attemptEnded 3 true',
      '2 jobEnded COMPLETED',
    ])
  })

  test('attempts that came and went are read one after the other, also those that said nothing', async () => {
    const rig = aFollowRig()
    await rig.store([aStart(), anEnd(2)], 1)
    await rig.store([aStart(), anEnd(2)], 3)
    rig.set({ state: 'FAILED', attempt: 3 })
    const view = rig.follow({ attempt: 1 })
    await rig.clock.advance(0)
    expect(view.said()).toEqual([
      ...range(1, 2),
      '1 attemptEnded 2 true',
      '2 attemptEnded 0 false',
      ...range(1, 2, 3),
      '3 attemptEnded 2 true',
      '3 jobEnded FAILED',
    ])
  })

  test('who asks for no attempt gets the current one, or waits for the first', async () => {
    const rig = aFollowRig()
    rig.set({ state: 'SCHEDULED', attempt: 0 })
    const view = rig.follow()
    await rig.clock.advance(1_000)
    expect(view.said()).toEqual([])
    rig.set({ state: 'RUNNING', attempt: 1 })
    await rig.store([aStart()])
    await rig.clock.advance(3_000)
    expect(view.said()).toEqual(['1:1'])
    rig.set({ state: 'RUNNING', attempt: 4 })
    await rig.store([aStart()], 4)
    const late = rig.follow()
    await rig.clock.advance(0)
    expect(late.said()).toEqual(['4:1'])
    view.abort.abort()
    late.abort.abort()
  })

  test('G04 an attempt that writes without a pause is seen also by who came before it and was never told of it', async () => {
    const rig = aFollowRig()
    rig.set({ state: 'SCHEDULED', attempt: 0 })
    const view = rig.follow()
    await settle()
    rig.set({ state: 'RUNNING', attempt: 1 })
    await rig.publish([aStart()])
    for (let sequence = 2; sequence < 202; sequence += 10) {
      await rig.publish([aBatch(sequence, 10)])
      await rig.clock.advance(5)
    }
    expect(view.said()).toEqual(range(1, 201))
    view.abort.abort()
  })

  test('G05 a job that ends before it ever ran ends the stream', async () => {
    const rig = aFollowRig()
    rig.set({ state: 'SCHEDULED', attempt: 0 })
    const view = rig.follow()
    await rig.clock.advance(1_000)
    rig.set({ state: 'CANCELLED' })
    rig.tell()
    await settle()
    expect(view.said()).toEqual(['0 jobEnded CANCELLED'])
    expect(view.state.ended).toBe(true)
  })

  test('G05 a job that ends while somebody subscribes gives its end, then a clean end', async () => {
    const rig = aFollowRig({ slow: 1, slowMs: 300 })
    await rig.store([aStart()])
    const view = rig.follow()
    await rig.clock.advance(100)
    await rig.publish([anEnd(2)])
    rig.set({ state: 'COMPLETED' })
    rig.tell()
    await rig.clock.advance(5_000)
    expect(view.said()).toEqual(['1:1', '1:2', '1 attemptEnded 2 true', '1 jobEnded COMPLETED'])
    expect(view.state).toEqual({ ended: true, fault: undefined })
  })
})

describe('what is asked for', () => {
  test('G06 a finished job is replayed and ended', async () => {
    const rig = aFollowRig()
    await rig.store([aStart(), aBatch(2, 3), anEnd(5)])
    rig.set({ state: 'COMPLETED', result: 'ok' })
    const view = rig.follow()
    await settle()
    expect(view.said()).toEqual([...range(1, 5), '1 attemptEnded 5 true', '1 jobEnded COMPLETED ok'])
    expect(rig.watches).toEqual([])
  })

  test('G06 a job that nobody knows is a fault of the caller', async () => {
    const rig = aFollowRig()
    rig.status = undefined
    const view = rig.follow()
    await settle()
    expect(view.state.fault).toBeInstanceOf(Unknown)
  })

  test.each([
    [{ fromSequence: -1 }, 'fromSequence'],
    [{ fromSequence: 1.5 }, 'fromSequence'],
    [{ fromSequence: 2 ** 53 }, 'fromSequence'],
    [{ attempt: 0 }, 'attempt'],
    [{ fromTimestamp: Number.NaN }, 'fromTimestamp'],
  ])('G06 E23 %j is refused by its name', (request, field) => {
    const rig = aFollowRig()
    expect(() => rig.follower.follow({ jobId, ...request })).toThrow(
      expect.objectContaining({ code: 'FOLLOW_INVALID', field }),
    )
  })

  test('G06 a sequence that is yet to come is waited for, or the end comes first', async () => {
    const rig = aFollowRig()
    await rig.store([aStart(), aBatch(2, 3)])
    const [soon, never] = [rig.follow({ fromSequence: 8 }), rig.follow({ fromSequence: 1_000 })]
    await rig.clock.advance(1_000)
    await rig.store([aBatch(5, 10)])
    await rig.clock.advance(2_000)
    expect(soon.said()).toEqual(range(8, 14))
    await rig.store([anEnd(15)])
    rig.set({ state: 'COMPLETED' })
    await rig.clock.advance(2_000)
    expect(soon.said().slice(7)).toEqual(['1:15', '1 attemptEnded 15 true', '1 jobEnded COMPLETED'])
    expect(never.said()).toEqual(['1 attemptEnded 15 true', '1 jobEnded COMPLETED'])
  })

  test('G07 a sequence inside a batch is the exact first event', async () => {
    const rig = aFollowRig()
    await rig.store([aStart(), aBatch(2, 50), aBatch(52, 50)])
    const views = [2, 30, 51, 52, 101].map((fromSequence) => rig.follow({ fromSequence }))
    await settle()
    expect(views.map((view) => view.said()[0])).toEqual(['1:2', '1:30', '1:51', '1:52', '1:101'])
    expect(views.map((view) => view.said().length)).toEqual([100, 72, 51, 50, 1])
    for (const view of views) view.abort.abort()
  })

  test('who does not want to wait gets what is stored', async () => {
    const rig = aFollowRig()
    await rig.store([aStart(), aBatch(2, 3), aBatch(7, 3)])
    const view = rig.follow({ noFollow: true })
    await settle()
    expect(view.said()).toEqual(range(1, 4))
    expect(view.state.ended).toBe(true)
    expect(rig.watches).toEqual([])
    expect(rig.clock.timers).toBe(0)
  })

  test('E24 a tail is for one log: what happens to another does not wake it', async () => {
    const rig = aFollowRig()
    await rig.store([aStart()])
    const view = rig.follow()
    await settle()
    const reads = rig.reads.length
    rig.tails.offer(logId('other', 1), [aBatch(2, 5)])
    await settle()
    expect(rig.reads).toHaveLength(reads)
    view.abort.abort()
  })
})
