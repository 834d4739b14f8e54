import { afterEach, describe, expect, test } from 'vitest'
import type { Message, Outgoing, Queue, Received } from '../../src/queues/port.ts'
import type { Action } from '../../src/tables/port.ts'

export interface QueueFixture {
  readonly queue: Queue
  /** A name that no other test uses. */
  readonly name: string
  readonly now: () => number
  /** Lets time pass. Does nothing on a real server: there the receive that follows waits for the event itself. */
  readonly elapse: (ms: number) => Promise<void>
  /** Puts a body there that the port would never send. */
  readonly inject: (body: string) => Promise<void>
  /** Commits actions in the storage that the queue shares; true if they took effect. Only with `within`. */
  readonly commit?: (actions: readonly Action[]) => Promise<boolean>
  readonly end: () => Promise<void>
}

export interface QueueTraits {
  /** Whether `elapse` is exact. On a real server "still hidden after n ms" would depend on the speed of the machine. */
  readonly clock: 'virtual' | 'real'
  /** Whether the order within a class is exact. Services promise best effort only. */
  readonly order: 'exact' | 'best effort'
  /** The shortest delay that the transport keeps. */
  readonly stepMs: number
  /** How long a receive waits for what must come. */
  readonly patienceMs: number
}

const longHoldMs = 60_000

/** What every adapter promises: a test for each sentence of the port. */
export const queueContract = (
  name: string,
  open: (options: { holdMs: number }) => Promise<QueueFixture>,
  traits: QueueTraits,
): void => {
  describe(`queue contract: ${name}`, () => {
    const fixtures: QueueFixture[] = []
    afterEach(async () => {
      for (const fixture of fixtures.splice(0)) await fixture.end()
    })
    const start = async (holdMs = longHoldMs) => {
      const fixture = await open({ holdMs })
      fixtures.push(fixture)
      return withHelpers(fixture, traits)
    }
    sending(start, traits)
    receiving(start, traits)
    holding(start, traits)
    burying(start)
    closing(start, traits)
    sharing(start)
  })
}

type Started = ReturnType<typeof withHelpers>
type Start = (holdMs?: number) => Promise<Started>

const withHelpers = (fixture: QueueFixture, traits: QueueTraits) => {
  const { queue, name } = fixture
  const outgoing = (message: Partial<Message> = {}, delayMs = 0): Outgoing => ({
    message: { jobId: 'job-1', queue: name, priority: 'normal', attempt: 0, ...message },
    notBefore: fixture.now() + delayMs,
  })
  return {
    ...fixture,
    outgoing,
    send: (message: Partial<Message> = {}, delayMs = 0) => queue.send([outgoing(message, delayMs)]),
    /** What is there now. */
    poll: (max = 10) => queue.receive(name, { max, waitMs: 0 }),
    /** Nothing is there before its time. Real time may have passed meanwhile: then the test looks at the clock instead. */
    expectHidden: async () => {
      if (traits.clock === 'virtual') expect(await queue.receive(name, { max: 1, waitMs: 0 })).toEqual([])
    },
    /** What is there, or comes. */
    wait: (max = 10) => queue.receive(name, { max, waitMs: traits.patienceMs }),
  }
}

const ids = (received: readonly Received[]) => received.map((one) => one.message?.jobId)
const only = (received: readonly Received[]): Received => {
  expect(received).toHaveLength(1)
  return received[0] as Received
}
const drain = async (world: Started, count: number, max = 10): Promise<readonly Received[]> => {
  const all: Received[] = []
  while (all.length < count) {
    const batch = await world.wait(max)
    expect(batch.length).toBeGreaterThan(0)
    all.push(...batch)
  }
  return all
}

const sending = (start: Start, traits: QueueTraits): void => {
  test('a message that was sent is received as it was sent', async () => {
    const world = await start()
    expect(await world.send({ jobId: 'job-9', priority: 'high', attempt: 7 })).toEqual([undefined])
    const received = only(await world.wait())
    expect(received.message).toEqual({ jobId: 'job-9', queue: world.name, priority: 'high', attempt: 7 })
    expect(received.queue).toBe(world.name)
    expect(received.receives).toBe(1)
    expect(JSON.parse(received.body)).toMatchObject({ job_id: 'job-9', queue: world.name, attempt: 7, v: 1 })
  })

  test('each message of many is answered in its place, and each is received', async () => {
    const world = await start()
    const many = Array.from({ length: 25 }, (_, index) => world.outgoing({ jobId: `job-${index}` }))
    expect(await world.queue.send(many)).toEqual(many.map(() => undefined))
    const received = await drain(world, many.length, 25)
    expect(new Set(ids(received))).toEqual(new Set(many.map(({ message }) => message.jobId)))
  })

  test('sending nothing is answered with nothing', async () => {
    const world = await start()
    expect(await world.queue.send([])).toEqual([])
  })

  test('nobody receives a message before its time', async () => {
    const world = await start()
    const outgoing = world.outgoing({}, traits.stepMs)
    await world.queue.send([outgoing])
    await world.expectHidden()
    await world.elapse(traits.stepMs)
    expect(ids(await world.wait())).toEqual(['job-1'])
    expect(world.now()).toBeGreaterThanOrEqual(outgoing.notBefore)
  })

  test('a receiver that waits gets a delayed message when its time has come', async () => {
    const world = await start()
    await world.send({}, traits.stepMs)
    const waiting = world.wait()
    await world.elapse(traits.stepMs)
    expect(ids(await waiting)).toEqual(['job-1'])
  })

  test('queues are separate', async () => {
    const world = await start()
    const other = await start()
    await world.send()
    expect(await other.poll()).toEqual([])
    expect(ids(await world.wait())).toEqual(['job-1'])
  })
}

const receiving = (start: Start, traits: QueueTraits): void => {
  test('a receiver that waits gets a message as soon as there is one', async () => {
    const world = await start()
    const waiting = world.wait()
    await world.elapse(0)
    await world.send()
    expect(ids(await waiting)).toEqual(['job-1'])
  })

  test('a receive gives at least one and at most as many as asked for', async () => {
    const world = await start()
    for (const jobId of ['a', 'b', 'c']) await world.send({ jobId })
    const first = await world.wait(2)
    expect(first.length).toBeGreaterThanOrEqual(1)
    expect(first.length).toBeLessThanOrEqual(2)
    const rest = await drain(world, 3 - first.length, 2)
    expect(new Set([...ids(first), ...ids(rest)])).toEqual(new Set(['a', 'b', 'c']))
  })

  test('a receive gives nothing once it has waited long enough', async () => {
    const world = await start()
    const waiting = world.queue.receive(world.name, { max: 1, waitMs: traits.stepMs })
    await world.elapse(traits.stepMs)
    expect(await waiting).toEqual([])
  })

  test('a receive that does not wait gives nothing at once', async () => {
    const world = await start()
    expect(await world.poll()).toEqual([])
  })

  test('a receive that is aborted gives nothing at once', async () => {
    const world = await start()
    const controller = new AbortController()
    const { signal } = controller
    const waiting = world.queue.receive(world.name, { max: 1, waitMs: traits.patienceMs, signal })
    await world.elapse(0)
    controller.abort()
    expect(await waiting).toEqual([])
    expect(await world.queue.receive(world.name, { max: 1, waitMs: traits.patienceMs, signal })).toEqual([])
  })

  test('what waits is given in order of priority', async () => {
    const world = await start()
    for (const priority of ['low', 'normal', 'high'] as const) await world.send({ jobId: priority, priority })
    expect(ids(await drain(world, 3))).toEqual(['high', 'normal', 'low'])
  })

  test('no class starves: a low message is among eight receives however many high ones wait', async () => {
    const world = await start()
    await world.send({ jobId: 'low', priority: 'low' })
    const high = Array.from({ length: 20 }, (_, index) => world.outgoing({ jobId: `high-${index}`, priority: 'high' }))
    await world.queue.send(high)
    const received: Received[] = []
    for (let turn = 0; turn < 8; turn++) received.push(...(await world.wait(1)))
    expect(ids(received)).toContain('low')
    expect(received).toHaveLength(8)
  })

  if (traits.order === 'exact') {
    test('within a class the order is by time, then by job', async () => {
      const world = await start()
      await world.queue.send([
        world.outgoing({ jobId: 'd' }, 20),
        world.outgoing({ jobId: 'c' }, 10),
        world.outgoing({ jobId: 'b' }, 10),
        world.outgoing({ jobId: 'a' }, 30),
      ])
      await world.elapse(30)
      expect(ids(await world.poll())).toEqual(['b', 'c', 'd', 'a'])
    })
  }

  test('B06 a body that is not one of ours is given without a message and with its body', async () => {
    const world = await start()
    await world.inject('{"job_id":')
    const received = only(await world.wait())
    expect(received.message).toBeUndefined()
    expect(received.body).toBe('{"job_id":')
    expect(received.queue).toBe(world.name)
  })
}

const holding = (start: Start, traits: QueueTraits): void => {
  test('a received message is hidden from other receivers', async () => {
    const world = await start()
    await world.send()
    only(await world.wait())
    expect(await world.poll()).toEqual([])
  })

  test('a message whose hold has passed is received again, and counted', async () => {
    const world = await start(traits.stepMs)
    await world.send()
    expect(only(await world.wait()).receives).toBe(1)
    await world.elapse(traits.stepMs)
    expect(only(await world.wait()).receives).toBe(2)
  })

  if (traits.clock === 'virtual') {
    test('a message stays hidden for the whole hold time, and as long as it was extended', async () => {
      const world = await start(longHoldMs)
      await world.send()
      const received = only(await world.wait())
      await world.elapse(longHoldMs - 1)
      expect(await world.poll()).toEqual([])
      await world.queue.extend([received], longHoldMs)
      await world.elapse(longHoldMs - 1)
      expect(await world.poll()).toEqual([])
      await world.elapse(1)
      expect(only(await world.poll()).receives).toBe(2)
    })
  }

  test('extend counts from now, not from the end of the hold', async () => {
    const world = await start()
    await world.send()
    const received = only(await world.wait())
    const extendedAt = world.now()
    await world.queue.extend([received], traits.stepMs)
    await world.expectHidden()
    await world.elapse(traits.stepMs)
    expect(only(await world.wait()).receives).toBe(2)
    expect(world.now()).toBeGreaterThanOrEqual(extendedAt + traits.stepMs)
  })

  test('a finished message never comes again', async () => {
    const world = await start()
    await world.send({ jobId: 'a' })
    const first = only(await world.wait())
    await world.queue.finish([first])
    await world.queue.release([first], 0)
    await world.send({ jobId: 'b' })
    expect(ids(await world.wait())).toEqual(['b'])
    expect(await world.poll()).toEqual([])
  })

  test('many messages are finished at once', async () => {
    const world = await start()
    await world.queue.send(Array.from({ length: 23 }, (_, index) => world.outgoing({ jobId: `job-${index}` })))
    const received = await drain(world, 23)
    await world.queue.finish(received)
    await world.queue.release(received, 0)
    expect(await world.poll()).toEqual([])
  })

  test('a released message is received again at once', async () => {
    const world = await start()
    await world.send()
    await world.queue.release([only(await world.wait())], 0)
    const again = only(await world.wait())
    expect(again.message?.jobId).toBe('job-1')
    expect(again.receives).toBe(2)
  })

  test('a receiver that waits gets what another releases', async () => {
    const world = await start()
    await world.send()
    const received = only(await world.wait())
    const waiting = world.wait()
    await world.elapse(0)
    await world.queue.release([received], 0)
    expect(ids(await waiting)).toEqual(['job-1'])
  })

  test('a message that was released with a delay is received after it', async () => {
    const world = await start()
    await world.send()
    const received = only(await world.wait())
    const releasedAt = world.now()
    await world.queue.release([received], traits.stepMs)
    await world.expectHidden()
    await world.elapse(traits.stepMs)
    expect(ids(await world.wait())).toEqual(['job-1'])
    expect(world.now()).toBeGreaterThanOrEqual(releasedAt + traits.stepMs)
  })

  test('B11 a receiver whose hold has passed can no longer finish, release or extend', async () => {
    const world = await start(traits.stepMs)
    await world.send()
    const stale = only(await world.wait())
    await world.elapse(traits.stepMs)
    const again = only(await world.wait())
    await world.queue.finish([stale])
    await world.queue.release([stale], 0)
    await world.queue.extend([stale], longHoldMs)
    await world.expectHidden()
    await world.elapse(traits.stepMs)
    expect(only(await world.wait()).receives).toBe(again.receives + 1)
  })
}

const burying = (start: Start): void => {
  test('B06 a dead letter is kept with body and reason, and the message never comes again', async () => {
    const world = await start()
    await world.inject('not ours')
    const received = only(await world.wait())
    await world.queue.deadLetter(received, 'cannot be read')
    await world.queue.release([received], 0)
    expect(await world.poll()).toEqual([])
    expect(await world.queue.deadLetters(world.name, 10)).toEqual([{ body: 'not ours', reason: 'cannot be read' }])
  })

  test('dead letters are read oldest first, no more than asked for, and as often as one likes', async () => {
    const world = await start()
    for (const reason of ['first', 'second', 'third']) {
      await world.send({ jobId: reason })
      await world.queue.deadLetter(only(await world.wait()), reason)
    }
    const reasons = async (limit: number) =>
      (await world.queue.deadLetters(world.name, limit)).map((letter) => letter.reason)
    expect(await reasons(10)).toEqual(['first', 'second', 'third'])
    expect(await reasons(10)).toEqual(['first', 'second', 'third'])
    expect(await reasons(2)).toHaveLength(2)
  })

  test('a queue without dead letters has none', async () => {
    const world = await start()
    expect(await world.queue.deadLetters(world.name, 10)).toEqual([])
  })
}

const closing = (start: Start, traits: QueueTraits): void => {
  test('close ends every receive with nothing', async () => {
    const world = await start()
    const waiting = [world.wait(), world.wait(), world.queue.receive(world.name, { max: 1, waitMs: traits.stepMs })]
    await world.elapse(0)
    await world.queue.close()
    expect(await Promise.all(waiting)).toEqual([[], [], []])
  })

  test('every call after close fails and says why', async () => {
    const world = await start()
    await world.send()
    const received = only(await world.wait())
    await world.queue.close()
    const closed = { code: 'QUEUE_CLOSED' }
    expect(await world.send()).toMatchObject([closed])
    await expect(world.poll()).rejects.toMatchObject(closed)
    await expect(world.queue.extend([received], 1_000)).rejects.toMatchObject(closed)
    await expect(world.queue.finish([received])).rejects.toMatchObject(closed)
    await expect(world.queue.release([received], 0)).rejects.toMatchObject(closed)
    await expect(world.queue.deadLetter(received, 'late')).rejects.toMatchObject(closed)
    await expect(world.queue.deadLetters(world.name, 1)).rejects.toMatchObject(closed)
    await world.queue.close()
  })
}

const sharing = (start: Start): void => {
  test('where the queue shares its storage, a message is sent if and only if the transaction stands', async () => {
    const world = await start()
    const { within } = world.queue
    if (!within || !world.commit) return expect(within).toBeUndefined()
    const impossible: Action = { kind: 'check', table: 'queue', key: ['nobody', 'x'], if: { test: 'present' } }
    expect(await world.commit([within.send(world.outgoing({ jobId: 'refused' })), impossible])).toBe(false)
    const waiting = world.wait()
    await world.elapse(0)
    expect(await world.commit([within.send(world.outgoing({ jobId: 'sent' }))])).toBe(true)
    expect(ids(await waiting)).toEqual(['sent'])
  })

  test('where the queue shares its storage, a message is finished if and only if the transaction stands', async () => {
    const world = await start()
    const { within } = world.queue
    if (!within || !world.commit) return expect(within).toBeUndefined()
    const impossible: Action = { kind: 'check', table: 'queue', key: ['nobody', 'x'], if: { test: 'present' } }
    await world.send()
    const received = only(await world.wait())
    expect(await world.commit([within.finish(received), impossible])).toBe(false)
    await world.queue.release([received], 0)
    const again = only(await world.wait())
    expect(await world.commit([within.finish(again)])).toBe(true)
    await world.queue.release([again], 0)
    expect(await world.poll()).toEqual([])
  })
}
