import { describe, expect, test } from 'vitest'
import { QueueRefused, QueueThrottled, QueueUnavailable } from '../../src/queues/faults.ts'
import type { Outgoing, Received } from '../../src/queues/port.ts'
import type { EntryOutcome, SqsAsk, SqsMessage, SqsService } from '../../src/queues/sqs/service.ts'
import { createSqsQueue, type SqsEvent, type SqsOptions, sqsDefaults } from '../../src/queues/sqs.ts'
import { createSeededRandom } from '../../src/sim/seeded-random.ts'
import { createVirtualClock, settle } from '../../src/sim/virtual-clock.ts'

type Call = { verb: string; url: string; ask?: SqsAsk; entries?: readonly unknown[] }

/** A service that does as it is told, on a clock that does as well. */
const world = (service: Partial<SqsService> = {}, options: Partial<SqsOptions> = {}, byName = true) => {
  const clock = createVirtualClock()
  const calls: Call[] = []
  const events: SqsEvent[] = []
  const fine = (count: number): readonly EntryOutcome[] => Array.from({ length: count }, () => undefined)
  const queue = createSqsQueue(
    {
      clock,
      random: createSeededRandom('sqs'),
      emit: (event) => events.push(event),
      service: {
        urlOf: service.urlOf ?? (async (name) => name),
        receive: async (url, ask, signal) => {
          calls.push({ verb: 'receive', url, ask })
          return (await service.receive?.(url, ask, signal)) ?? []
        },
        send: async (url, entries) => {
          calls.push({ verb: 'send', url, entries })
          return (await service.send?.(url, entries)) ?? fine(entries.length)
        },
        remove: async (url, handles) => {
          calls.push({ verb: 'remove', url, entries: handles })
          return (await service.remove?.(url, handles)) ?? fine(handles.length)
        },
        hide: async (url, entries) => {
          calls.push({ verb: 'hide', url, entries })
          return (await service.hide?.(url, entries)) ?? fine(entries.length)
        },
        close: () => calls.push({ verb: 'close', url: '' }),
      },
    },
    { ...sqsDefaults, region: 'eu-west-1', ...(byName ? { prefix: 'p-' } : {}), ...options },
  )
  const outgoing = (jobId: string, delayMs = 0): Outgoing => ({
    message: { jobId, queue: 'mail', priority: 'normal', attempt: 0 },
    notBefore: clock.now() + delayMs,
  })
  const of = (verb: string) => calls.filter((call) => call.verb === verb)
  /** Moves time until the work is done. */
  const finish = async <Result>(work: Promise<Result>): Promise<Result> => {
    let done = false
    const end = () => {
      done = true
    }
    work.then(end, end)
    for (let step = 0; step < 100_000 && !done; step++) {
      await settle()
      if (!done) clock.step()
    }
    return work
  }
  return { clock, calls, events, queue, outgoing, of, finish }
}

const sqsMessage = (id: string, jobId = id): SqsMessage => ({
  id,
  handle: `handle-${id}`,
  body: JSON.stringify({ job_id: jobId, queue: 'mail', priority: 'normal', attempt: 0, v: 1 }),
  receives: 1,
  sentAt: 0,
})
const ids = (received: readonly Received[]) => received.map((one) => one.message?.jobId)
const long = (ask: SqsAsk) => ask.waitSeconds > 0
const never = (signal?: AbortSignal) =>
  new Promise<readonly SqsMessage[]>((resolve) => signal?.addEventListener('abort', () => resolve([])))

describe('sending', () => {
  test('goes in calls of ten', async () => {
    const { queue, outgoing, of } = world()
    const many = Array.from({ length: 25 }, (_, index) => outgoing(`job-${index}`))
    expect(await queue.send(many)).toEqual(many.map(() => undefined))
    expect(of('send').map((call) => call.entries?.length)).toEqual([10, 10, 5])
  })

  test('tries again only what failed, and answers each message in its place', async () => {
    let call = 0
    const { queue, outgoing, of, events, finish } = world({
      send: async (_, entries) => {
        call += 1
        if (call > 1) return entries.map(() => undefined)
        return [undefined, new QueueThrottled('slow down'), new QueueRefused('bad entry'), undefined]
      },
    })
    const outcome = await finish(queue.send(['a', 'b', 'c', 'd'].map((jobId) => outgoing(jobId))))
    expect(outcome.map((fault) => fault?.code)).toEqual([undefined, undefined, 'QUEUE_REFUSED', undefined])
    expect(of('send').map((one) => one.entries?.length)).toEqual([4, 1])
    expect(events).toEqual([{ kind: 'retried', verb: 'send', code: 'QUEUE_THROTTLED', count: 1 }])
  })

  test('never throws: a service that stays down is a fault in the place of each message', async () => {
    const { queue, outgoing, of, finish } = world({
      send: async () => {
        throw new QueueUnavailable('down')
      },
    })
    const outcome = await finish(queue.send([outgoing('a'), outgoing('b')]))
    expect(outcome.map((fault) => fault?.code)).toEqual(['QUEUE_UNAVAILABLE', 'QUEUE_UNAVAILABLE'])
    expect(of('send')).toHaveLength(sqsDefaults.retry.attemptsMax)
  })

  test('to a queue that nobody configured is refused without a call', async () => {
    const { queue, outgoing, calls } = world({}, { queues: {} }, false)
    expect(await queue.send([outgoing('a')])).toMatchObject([{ code: 'QUEUE_REFUSED', field: 'queue' }])
    expect(calls).toEqual([])
  })

  test('to a queue whose name looks like the part of another is refused', async () => {
    const { queue, outgoing } = world()
    const { message, notBefore } = outgoing('a')
    const outcome = await queue.send([{ message: { ...message, queue: 'mail-high' }, notBefore }, outgoing('b')])
    expect(outcome).toMatchObject([{ code: 'QUEUE_REFUSED' }, undefined])
  })

  test.each([
    [0, 0],
    [-5_000, 0],
    [1, 1],
    [1_000, 1],
    [1_001, 2],
    [899_001, 900],
    [86_400_000, 900],
  ])('a delay of %d ms is one of %d seconds there, and never more than a quarter of an hour', async (ms, seconds) => {
    const { queue, outgoing, of } = world()
    await queue.send([outgoing('a', ms)])
    expect(of('send')[0]?.entries).toMatchObject([{ delaySeconds: seconds }])
  })
})

describe('receiving', () => {
  test('asks class by class without waiting, then all at once with waiting', async () => {
    const { queue, of, finish } = world({ receive: async (_, ask, signal) => (long(ask) ? never(signal) : []) })
    const controller = new AbortController()
    const waiting = queue.receive('mail', { max: 5, waitMs: 60_000, signal: controller.signal })
    await settle()
    expect(of('receive').map(({ url, ask }) => [url, ask?.max, ask?.waitSeconds])).toEqual([
      ['p-mail-high', 5, 0],
      ['p-mail', 5, 0],
      ['p-mail-low', 5, 0],
      ['p-mail-high', 5, 20],
      ['p-mail', 5, 20],
      ['p-mail-low', 5, 20],
    ])
    controller.abort()
    expect(await finish(waiting)).toEqual([])
  })

  test('every eighth receive asks the lowest class first', async () => {
    const { queue, of } = world({ receive: async (url) => [sqsMessage(url)] })
    for (let turn = 0; turn < 16; turn++) await queue.receive('mail', { max: 1, waitMs: 0 })
    expect(
      of('receive')
        .map(({ url }, index) => (url === 'p-mail-low' ? index + 1 : 0))
        .filter(Boolean),
    ).toEqual([8, 16])
  })

  test('the first class that has something ends the wait for the others', async () => {
    const aborted: string[] = []
    const { queue, finish } = world({
      receive: async (url, ask, signal) => {
        if (!long(ask)) return []
        if (url === 'p-mail-low') return [sqsMessage('low')]
        await never(signal)
        aborted.push(url)
        return []
      },
    })
    expect(ids(await finish(queue.receive('mail', { max: 5, waitMs: 20_000 })))).toEqual(['low'])
    expect(aborted).toEqual(['p-mail-high', 'p-mail'])
  })

  test('what comes beyond the number asked for is given back at once, the lowest class first to go', async () => {
    const { queue, of, finish } = world({
      receive: async (url, ask) => (long(ask) ? [sqsMessage(`${url}-1`), sqsMessage(`${url}-2`)] : []),
    })
    expect(ids(await finish(queue.receive('mail', { max: 3, waitMs: 20_000 })))).toEqual([
      'p-mail-high-1',
      'p-mail-high-2',
      'p-mail-1',
    ])
    expect(of('hide')).toEqual([
      { verb: 'hide', url: 'p-mail', entries: [{ handle: 'handle-p-mail-2', seconds: 0 }] },
      {
        verb: 'hide',
        url: 'p-mail-low',
        entries: [
          { handle: 'handle-p-mail-low-1', seconds: 0 },
          { handle: 'handle-p-mail-low-2', seconds: 0 },
        ],
      },
    ])
  })

  test('what comes with the abort is given back, not lost for a hold', async () => {
    const controller = new AbortController()
    const { queue, of } = world({
      receive: async (url) => {
        if (url === 'p-mail') controller.abort()
        return url === 'p-mail' ? [sqsMessage('late')] : []
      },
    })
    expect(await queue.receive('mail', { max: 1, waitMs: 0, signal: controller.signal })).toEqual([])
    expect(of('hide')).toMatchObject([{ url: 'p-mail', entries: [{ handle: 'handle-late', seconds: 0 }] }])
  })

  test('more than ten are taken in several calls', async () => {
    let next = 0
    const { queue, of } = world({
      receive: async (url, ask) =>
        url === 'p-mail-high' ? Array.from({ length: ask.max }, () => sqsMessage(`m-${next++}`)) : [],
    })
    expect(await queue.receive('mail', { max: 23, waitMs: 0 })).toHaveLength(23)
    expect(of('receive').map(({ ask }) => ask?.max)).toEqual([10, 10, 3])
  })

  test('B07 a receive that finds nothing although something is there goes on asking, without spinning', async () => {
    let rounds = 0
    const { queue, of, finish } = world({
      receive: async (url, ask) => {
        if (url === 'p-mail-high' && !long(ask)) rounds += 1
        return rounds === 6 && url === 'p-mail' ? [sqsMessage('a')] : []
      },
    })
    expect(ids(await finish(queue.receive('mail', { max: 1, waitMs: 20_000 })))).toEqual(['a'])
    expect(of('receive').length).toBeLessThan(40)
  })

  test('B07 a server that answers every long poll at once with nothing is asked at most twice a second', async () => {
    const { queue, of, finish } = world()
    expect(await finish(queue.receive('mail', { max: 1, waitMs: 20_000 }))).toEqual([])
    expect(of('receive').length).toBeLessThanOrEqual(6 * 41)
  })

  test.each([
    ['throttled', () => new QueueThrottled('slow down')],
    ['broken', () => new QueueUnavailable('500')],
  ])(
    'B15 ten minutes of a service that is %s: pauses that grow, no busy loop, and then it goes on',
    async (_, fault) => {
      let healthy = false
      const { queue, of, clock, finish } = world({
        receive: async (url) => {
          if (!healthy) throw fault()
          return url === 'p-mail' ? [sqsMessage('a')] : []
        },
      })
      let faults = 0
      const received: (string | undefined)[] = []
      const receiver = async () => {
        while (received.length === 0) {
          await queue.receive('mail', { max: 1, waitMs: 20_000 }).then(
            (some) => received.push(...ids(some)),
            () => {
              faults += 1
            },
          )
        }
      }
      const running = receiver()
      await clock.advance(600_000)
      expect(faults).toBeGreaterThan(10)
      expect(of('receive').length).toBeGreaterThan(20)
      expect(of('receive').length).toBeLessThan(100)
      healthy = true
      await clock.advance(sqsDefaults.pollRetry.capMs)
      await finish(running)
      expect(received).toEqual(['a'])
    },
  )

  test('B15 a receiver that does not wait is told of the fault without a call while the service rests', async () => {
    const { queue, of } = world({
      receive: async () => {
        throw new QueueThrottled('slow down')
      },
    })
    for (let turn = 0; turn < 100; turn++) {
      await expect(queue.receive('mail', { max: 1, waitMs: 0 })).rejects.toMatchObject({ code: 'QUEUE_THROTTLED' })
    }
    expect(of('receive')).toHaveLength(1)
  })

  test('a service that refuses us is reported at once', async () => {
    const { queue } = world({
      receive: async () => {
        throw new QueueRefused('no such queue')
      },
    })
    await expect(queue.receive('mail', { max: 1, waitMs: 20_000 })).rejects.toMatchObject({ code: 'QUEUE_REFUSED' })
  })

  test('what was found is given even if the next class fails', async () => {
    const { queue } = world({
      receive: async (url) => {
        if (url !== 'p-mail-high') throw new QueueUnavailable('500')
        return [sqsMessage('a')]
      },
    })
    expect(ids(await queue.receive('mail', { max: 5, waitMs: 0 }))).toEqual(['a'])
  })
})

describe('receipts', () => {
  const one = { receive: async (url: string) => (url === 'p-mail' ? [sqsMessage('a')] : []) }
  const receive = (queue: ReturnType<typeof world>['queue']) => queue.receive('mail', { max: 1, waitMs: 0 })

  test('B11 a receipt that the service calls stale is ignored and counted', async () => {
    const { queue, events } = world({ ...one, remove: async () => ['stale'], hide: async () => ['stale'] })
    const received = await receive(queue)
    await queue.finish(received)
    await queue.extend(received, 1_000)
    await queue.release(received, 0)
    expect(events).toEqual([
      { kind: 'stale', verb: 'finish', count: 1 },
      { kind: 'stale', verb: 'extend', count: 1 },
      { kind: 'stale', verb: 'release', count: 1 },
    ])
  })

  test('B11 a receipt whose hold has passed by our own clock is not even sent', async () => {
    const { queue, events, of, clock } = world(one)
    const received = await receive(queue)
    await clock.advance(60_000)
    await queue.finish(received)
    expect(of('remove')).toEqual([])
    expect(events).toEqual([{ kind: 'stale', verb: 'finish', count: 1 }])
  })

  test('an extended receipt is good for as long as it was extended', async () => {
    const { queue, of, clock } = world(one)
    const received = await receive(queue)
    await queue.extend(received, 120_000)
    await clock.advance(119_999)
    await queue.finish(received)
    expect(of('remove')).toHaveLength(1)
  })

  test('no message is hidden for more than twelve hours from its receive', async () => {
    const { queue, of, clock } = world(one)
    const received = await receive(queue)
    await queue.extend(received, 100 * 3_600_000)
    await clock.advance(3_600_000)
    await queue.extend(received, 100 * 3_600_000)
    expect(of('hide').flatMap(({ entries }) => entries)).toMatchObject([{ seconds: 43_200 }, { seconds: 39_600 }])
  })

  test('a finish that fails for now is tried again, and one that fails for good is told', async () => {
    let fail = 1
    const { queue, of, finish } = world({
      ...one,
      remove: async () => {
        if (fail-- > 0) throw new QueueUnavailable('500')
        return [undefined]
      },
    })
    await finish(queue.finish(await receive(queue)))
    expect(of('remove')).toHaveLength(2)
    fail = 100
    await expect(finish(queue.finish(await receive(queue)))).rejects.toMatchObject({ code: 'QUEUE_UNAVAILABLE' })
  })

  test('a listener that throws breaks nothing', async () => {
    const { queue, events } = world({ ...one, remove: async () => ['stale'] })
    events.push = () => {
      throw new Error('the sink is full')
    }
    await queue.finish(await receive(queue))
  })
})

describe('dead letters', () => {
  test('are sent before the message is removed, and not removed if they could not be sent', async () => {
    const { queue, calls, finish } = world({
      receive: async (url) => (url === 'p-mail' ? [sqsMessage('a')] : []),
      send: async () => [new QueueRefused('no')],
    })
    const [received] = await queue.receive('mail', { max: 1, waitMs: 0 })
    await expect(finish(queue.deadLetter(received as Received, 'unknown job'))).rejects.toMatchObject({
      code: 'QUEUE_REFUSED',
    })
    expect(calls.map(({ verb }) => verb)).not.toContain('remove')
  })

  test('B06 a body too long to be wrapped is kept in part', async () => {
    const huge = '\u0001'.repeat(1_000_000)
    const { queue, of } = world({
      receive: async (url) => (url === 'p-mail' ? [{ ...sqsMessage('a'), body: huge }] : []),
    })
    const [received] = await queue.receive('mail', { max: 1, waitMs: 0 })
    await queue.deadLetter(received as Received, 'cannot be read')
    const [{ body }] = of('send').flatMap(({ entries = [] }) => entries) as [{ body: string }]
    expect(body.length).toBeLessThan(256 * 1_024)
    expect(JSON.parse(body)).toMatchObject({ reason: 'cannot be read', cut_from: 1_000_000 })
  })

  test('that somebody else put there are shown as they are', async () => {
    let reads = 0
    const { queue } = world({ receive: async () => (reads++ === 0 ? [{ ...sqsMessage('x'), body: 'hello' }] : []) })
    expect(await queue.deadLetters('mail', 5)).toEqual([{ body: 'hello', reason: 'put here by somebody else' }])
  })
})
