import { createHash } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import type { AttemptLog, EndInfo } from '../../src/log/attempt-log.ts'
import { eventTypes, type StoredItem } from '../../src/log/event.ts'
import { deflateNow } from '../../src/log/payload.ts'
import { columnsOf, countOf } from '../../src/log/stored-batch.ts'
import { settle } from '../../src/sim/virtual-clock.ts'
import { aLog, bytesOf, closingOf, eventsOf, lines, Refused, rangesOf } from './rig.ts'

const watch = (promise: Promise<unknown> | undefined) => {
  const seen = { state: promise === undefined ? 'none' : 'pending' }
  promise?.then(
    () => {
      seen.state = 'resolved'
    },
    () => {
      seen.state = 'rejected'
    },
  )
  return seen
}

/** Ends the log and gives everything that is stored of it then. */
const whole = async (log: AttemptLog, stored: readonly StoredItem[], end: EndInfo): Promise<readonly StoredItem[]> => {
  const closing = await log.finish(end)
  return [...stored, ...closingOf(closing)]
}

const triggerOf = (item: Parameters<typeof columnsOf>[0]): number => {
  const columns = columnsOf(item)
  return 'damage' in columns ? -1 : columns.trigger
}

describe('batches', () => {
  test('R0.25 a hundred lines that nobody watches are two full batches between start and end', async () => {
    const { log, stored, write, clock } = aLog({}, { prompt: true })
    write(lines(100))
    await clock.advance(10)
    const closing = await log.finish({ exitCode: 0 })
    const items = [...stored, ...closingOf(closing)]
    expect(rangesOf(items)).toEqual(['1 processStart', '2–51', '52–101', '102 processEnd'])
    expect(rangesOf(closing.output)).toEqual([])
    expect(bytesOf(items, 'stdout').toString()).toBe(lines(100))
  })

  test('R0.24 output is flushed by count, by bytes, by age, before a critical event and at the end, and says so', async () => {
    const { log, stored, write, clock } = aLog(
      { maxBatchSize: 3, batchSizeBound: 3, maxBatchBytes: 1_024 },
      { prompt: true },
    )
    write(lines(3))
    write(`${'x'.repeat(600)}\n`)
    write(`${'y'.repeat(600)}\n`)
    await clock.advance(2_000)
    write('before the error\n')
    await log.error('broken')
    write('last\n')
    const items = await whole(log, stored, { exitCode: 1 })
    expect(rangesOf(items)).toEqual([
      '1 processStart',
      '2–4',
      '5–5',
      '6–6',
      '7–7',
      '8 processError',
      '9–9',
      '10 processEnd',
    ])
    expect(items.filter(({ type }) => type === eventTypes.outputBatch).map(triggerOf)).toEqual([1, 2, 3, 4, 6])
  })

  test('R0.24 nothing is flushed before its age, and then at once', async () => {
    const { publishes, write, clock } = aLog({}, { prompt: true })
    await clock.advance(1)
    expect(publishes).toHaveLength(1)
    write('a\n')
    await clock.advance(1_999)
    expect(publishes).toHaveLength(1)
    await clock.advance(1)
    expect(rangesOf(publishes[1]?.items ?? [])).toEqual(['2–2'])
  })

  test('an attempt that ends at once gives its whole log to its outcome', async () => {
    const { log, publishes, write } = aLog()
    write('done\n')
    expect(publishes).toHaveLength(1)
    const other = aLog()
    const closing = await other.log.finish({ exitCode: 0 })
    expect(rangesOf(closingOf(closing))).toEqual(['1 processStart', '2 processEnd'])
    expect(other.publishes).toEqual([])
    expect(other.clock.timers).toBe(0)
    log.abandon()
  })

  test('batches grow while output is fast and fall back when it is slow', async () => {
    const { log, stored, write, clock } = aLog({ maxBatchSize: 10, batchSizeBound: 40 }, { prompt: true })
    write(lines(10 + 10 + 20 + 20 + 40 + 40 + 40))
    await clock.advance(10)
    expect(stored.slice(1).map(countOf)).toEqual([10, 10, 20, 20, 40, 40, 40])
    write(lines(1))
    await clock.advance(2_000)
    write(lines(10))
    await settle()
    expect(stored.slice(-2).map(countOf)).toEqual([1, 10])
    log.abandon()
  })

  test('a page is compressed while the one before it is being stored, and pages leave in order whichever is ready first', async () => {
    const compressing: (() => void)[] = []
    const { log, write, publishes, last } = aLog(
      { maxBatchSize: 40, batchSizeBound: 40 },
      { deflate: (plain) => new Promise((resolve) => compressing.push(() => resolve(deflateNow(plain)))) },
    )
    write(lines(40 + 40 + 40))
    // The start waits for nothing; all three pages are being compressed meanwhile.
    expect(publishes.map(({ items }) => rangesOf(items))).toEqual([['1 processStart']])
    expect(compressing).toHaveLength(3)
    compressing[1]?.()
    await last().acknowledge()
    // The second page is ready, but the first comes first.
    expect(publishes).toHaveLength(1)
    compressing[0]?.()
    await settle()
    expect(rangesOf(last().items)).toEqual(['2–41', '42–81'])
    await last().acknowledge()
    compressing[2]?.()
    await settle()
    expect(rangesOf(last().items)).toEqual(['82–121'])
    log.abandon()
  })

  test('slow batches do not grow', async () => {
    const { log, stored, write, clock } = aLog({ maxBatchSize: 10 }, { prompt: true })
    for (let round = 0; round < 5; round++) {
      write(lines(10))
      await clock.advance(201)
    }
    expect(stored.slice(1).map(countOf)).toEqual([10, 10, 10, 10, 10])
    log.abandon()
  })

  test('much that is left at the end is published, because in the settling transaction it would cost twice', async () => {
    const { log, stored, publishes, write, clock } = aLog({}, { prompt: true })
    await clock.advance(10)
    const noise = (seed: string): string => createHash('sha512').update(seed).digest('hex')
    const lineAt = (at: number): string => `${[1, 2, 3, 4].map((part) => noise(`${at} ${part}`)).join('')}\n`
    const text = Array.from({ length: 40 }, (_, at) => lineAt(at))
    write(text.join(''))
    const closing = await log.finish({ exitCode: 0 })
    expect(publishes.map(({ items }) => rangesOf(items))).toEqual([['1 processStart'], ['2–41']])
    expect(rangesOf(closingOf(closing))).toEqual(['42 processEnd'])
    expect(bytesOf(stored, 'stdout').toString()).toBe(text.join(''))
  })

  test('E16 the age and the count in the same instant make one flush', async () => {
    const { log, publishes, write, clock } = aLog({ maxBatchSize: 2 }, { prompt: true })
    await clock.advance(1)
    write('a\n')
    clock.setTimeout(() => write('b\n'), 2_000)
    await clock.advance(2_000)
    await clock.advance(5_000)
    expect(publishes.slice(1).map(({ items }) => rangesOf(items))).toEqual([['2–3']])
    log.abandon()
  })

  test('E17 E18 a critical event comes behind the flush in flight and behind all output before it', async () => {
    const { log, publishes, last, write, stored } = aLog()
    write('one\n')
    expect(publishes).toHaveLength(1)
    write('two\nunfinished')
    const error = watch(log.error('no'))
    write('three\n')
    await settle()
    expect(publishes).toHaveLength(1)
    await last().acknowledge()
    expect(rangesOf(last().items)).toEqual(['2–4', '5 processError'])
    expect(error.state).toBe('pending')
    await last().acknowledge()
    expect(error.state).toBe('resolved')
    const closing = await log.finish({ exitCode: 0 })
    expect(rangesOf(closingOf(closing))).toEqual(['6–6', '7 processEnd'])
    expect(bytesOf([...stored, ...closing.output], 'stdout').toString()).toBe('one\ntwo\nunfinishedthree\n')
  })

  test('E17 critical events that wait behind one flush are each told when they are stored', async () => {
    const { log, last, write } = aLog()
    write('one\n')
    const errors = [watch(log.error('first')), watch(log.error('second'))]
    await last().acknowledge()
    expect(rangesOf(last().items)).toEqual(['2–2', '3 processError'])
    await last().acknowledge()
    expect(errors.map(({ state }) => state)).toEqual(['resolved', 'pending'])
    expect(rangesOf(last().items)).toEqual(['4 processError'])
    await last().acknowledge()
    expect(errors.map(({ state }) => state)).toEqual(['resolved', 'resolved'])
    log.abandon()
  })

  test('E18 the end comes behind everything that is still being stored', async () => {
    const { log, write, last, publishes } = aLog({ maxBatchSize: 2 })
    write(lines(3))
    const finished = log.finish({ exitCode: 0 })
    const seen = watch(finished)
    await settle()
    expect(seen.state).toBe('pending')
    while (seen.state === 'pending') await last().acknowledge()
    expect(publishes.flatMap(({ items }) => rangesOf(items))).toEqual(['1 processStart', '2–3'])
    expect(rangesOf(closingOf(await finished))).toEqual(['4–4', '5 processEnd'])
  })

  test('E19 a call carries 25 items at most, and no item more bytes than the job allows', async () => {
    const { log, write, publishes, last } = aLog({ maxBatchSize: 1, batchSizeBound: 1 })
    write(lines(60))
    for (let call = 0; call < 4; call++) await last().acknowledge()
    expect(publishes.map(({ items }) => items.length)).toEqual([25, 25, 11])
    expect(publishes.flatMap(({ items }) => items.map(({ sequence }) => sequence))).toEqual(
      Array.from({ length: 61 }, (_, at) => at + 1),
    )
    log.abandon()
  })

  test('E20 a batch carries the playback interval of its job', async () => {
    const { log, write } = aLog({ playbackIntervalMs: 70 }, { prompt: true })
    write('a\n')
    const { output } = await log.finish({})
    expect(output.map(columnsOf)).toMatchObject([{ playbackIntervalMs: 70 }])
  })
})

describe('lines', () => {
  const roundTrip = async (chunks: readonly (readonly [string | Buffer, ('stdout' | 'stderr')?])[], config = {}) => {
    const { log, stored, clock } = aLog(config, { prompt: true })
    for (const [chunk, stream = 'stdout'] of chunks) log.output(stream, Buffer.from(chunk as string))
    await clock.advance(1)
    const items = await whole(log, stored, { exitCode: 0 })
    return { items, outputs: eventsOf(items).filter(({ type }) => type === eventTypes.output) }
  }
  const textOf = (event: { output?: Uint8Array }): string => Buffer.from(event.output ?? []).toString('latin1')

  test('E04 binary output is kept byte by byte', async () => {
    const bytes = Buffer.from(Array.from({ length: 2_000 }, (_, at) => (at * 7919) % 256))
    const { items } = await roundTrip([[bytes.subarray(0, 999)], [bytes.subarray(999)]])
    expect(bytesOf(items, 'stdout').equals(bytes)).toBe(true)
  })

  test('E05 a last line without a line break is an output of its own and goes on nowhere', async () => {
    const { outputs } = await roundTrip([['one\ntwo']])
    expect(outputs.map(textOf)).toEqual(['one\n', 'two'])
    expect(outputs.map(({ continued }) => continued)).toEqual([false, false])
  })

  test('E06 carriage returns stay where they are', async () => {
    const { outputs } = await roundTrip([['10%\r20%\r'], ['30%\r\nnext\r\n']])
    expect(outputs.map(textOf)).toEqual(['10%\r20%\r30%\r\n', 'next\r\n'])
  })

  test('a line that comes in pieces is one output, and streams do not mix', async () => {
    const { outputs } = await roundTrip([['hel'], ['err', 'stderr'], ['lo\nwor'], ['or\n', 'stderr'], ['ld\n']])
    expect(outputs.map((event) => `${event.stream} ${textOf(event)}`)).toEqual([
      'stdout hello\n',
      'stderr error\n',
      'stdout world\n',
    ])
  })

  test('E03 a line of 10 MB is cut into parts that say so, and joins to the same bytes', async () => {
    const piece = Buffer.alloc(1_000_003, 'abcdefg')
    const { items, outputs } = await roundTrip([...Array.from({ length: 10 }, () => [piece] as const), ['\nnext\n']])
    expect(
      bytesOf(items, 'stdout').equals(
        Buffer.concat([...Array.from({ length: 10 }, () => piece), Buffer.from('\nnext\n')]),
      ),
    ).toBe(true)
    expect(outputs.slice(0, -2).every(({ continued, output }) => continued && output?.length === 65_536)).toBe(true)
    expect(outputs.slice(-2).map(({ continued }) => continued)).toEqual([false, false])
    expect(items.every(({ payload }) => payload.length <= 256 * 1_024)).toBe(true)
  })

  test('E03 a line of exactly the cap is one output, and one byte more makes two', async () => {
    const whole = `${'x'.repeat(65_535)}\n`
    expect((await roundTrip([[whole]])).outputs).toHaveLength(1)
    expect((await roundTrip([['x'], [whole.slice(1)]])).outputs.map(({ continued }) => continued)).toEqual([false])
    const { outputs } = await roundTrip([[`x${whole}`]])
    expect(outputs.map(({ output, continued }) => [output?.length, continued])).toEqual([
      [65_536, true],
      [1, false],
    ])
  })

  test('E10 timestamps never go back, whatever the clock does', async () => {
    const { log, stored, clock, write } = aLog({ maxBatchSize: 2, batchSizeBound: 2 }, { prompt: true })
    const start = clock.now()
    write('a\n')
    clock.setWall(start - 60_000)
    write('b\n')
    write('c\n')
    clock.setWall(start + 1_000)
    write('d\n')
    clock.setWall(start + 2 ** 33)
    write('e\n')
    const items = await whole(log, stored, {})
    const times = eventsOf(items).map(({ timestamp }) => timestamp)
    expect(times).toHaveLength(7)
    expect(times).toEqual([...times].sort((a, b) => a - b))
  })

  test('R0.13 each output has its own sequence and the time at which it was read', async () => {
    const { log, clock, write, stored } = aLog({}, { prompt: true })
    const start = clock.now()
    write('a\nb\n')
    await clock.advance(50)
    write('c\n', 'stderr')
    await clock.advance(50)
    write('d\n')
    await clock.advance(2_000)
    const outputs = eventsOf(stored).slice(1)
    expect(outputs.map(({ sequence, timestamp, stream }) => [sequence, timestamp - start, stream])).toEqual([
      [2, 0, 'stdout'],
      [3, 0, 'stdout'],
      [4, 50, 'stderr'],
      [5, 100, 'stdout'],
    ])
    log.abandon()
  })

  test('an unfinished line is stored when it has waited long enough, marked as going on', async () => {
    const { log, clock, write, stored } = aLog({}, { prompt: true })
    write('Password: ')
    await clock.advance(2_000)
    write('\n')
    await clock.advance(2_000)
    expect(
      eventsOf(stored)
        .slice(1)
        .map((event) => [textOf(event), event.continued]),
    ).toEqual([
      ['Password: ', true],
      ['\n', false],
    ])
    log.abandon()
  })

  test('R0.36 a batch size of one stores every line as an item of its own', async () => {
    const { items } = await roundTrip([[lines(5)]], { maxBatchSize: 1, batchSizeBound: 1 })
    expect(items.map(countOf)).toEqual([1, 1, 1, 1, 1, 1, 1])
    expect(bytesOf(items, 'stdout').toString()).toBe(lines(5))
  })
})

describe('the end', () => {
  test('PROCESS_END says how it ended, and what each stream came to', async () => {
    const { log, write, stored, clock } = aLog({}, { prompt: true })
    const startedAt = clock.now()
    write('a\nbc')
    write('oh\n', 'stderr')
    await clock.advance(500)
    const closing = await log.finish({ signal: 'SIGKILL', error: 'out of time' })
    const [event] = eventsOf([closing.end])
    expect(event).toMatchObject({
      type: eventTypes.processEnd,
      data: { case: 'processEnd', value: { signal: 'SIGKILL', error: 'out of time' } },
    })
    const items = [...stored, ...closing.output]
    if (event?.data?.case !== 'processEnd') throw new Error('no end')
    expect(event.data.value.exitCode).toBeUndefined()
    const sha256 = (stream: 'stdout' | 'stderr') => createHash('sha256').update(bytesOf(items, stream)).digest('hex')
    expect(
      event.data.value.totals.map(({ stream, bytes, outputs, sha256 }) => [
        stream,
        bytes,
        outputs,
        Buffer.from(sha256).toString('hex'),
      ]),
    ).toEqual([
      [1, 4n, 2n, sha256('stdout')],
      [2, 3n, 1n, sha256('stderr')],
    ])
    expect(Number(event.data.value.startedAt?.seconds) * 1_000).toBe(startedAt)
  })

  test('an exit code of 0 is there, and not the same as none', async () => {
    const { log } = aLog()
    const { end } = await log.finish({ exitCode: 0 })
    expect(eventsOf([end])[0]?.data).toMatchObject({ value: { exitCode: 0 } })
  })

  test('progress and cuts have their place among the output; of progress in a row the newest is kept', async () => {
    const { log, write, stored, clock } = aLog({}, { prompt: true })
    write('a\n')
    log.progress({ fraction: 0.1 })
    log.progress({ fraction: 0.2, text: 'on it' })
    write('b\n')
    log.cut('stderr', 12, 'a grandchild went on')
    await clock.advance(2_000)
    const items = await whole(log, stored, { exitCode: 0 })
    expect(rangesOf(items)).toEqual(['1 processStart', '2–2', '3 progress', '4–4', '5 outputCut', '6 processEnd'])
    expect(eventsOf(items)[2]?.data).toMatchObject({ value: { fraction: 0.2, text: 'on it' } })
    expect(eventsOf(items)[4]?.data).toMatchObject({ value: { bytes: 12n, reason: 'a grandchild went on', stream: 2 } })
  })

  test('E07 output beyond the limit is cut in the middle: head and tail are kept, and the marker counts what is missing', async () => {
    const { log, write, stored, clock } = aLog({ maxOutputBytes: 10_000 }, { prompt: true })
    const text = lines(40_000)
    for (let at = 0; at < text.length; at += 7_777) write(text.slice(at, at + 7_777))
    await clock.advance(1)
    const items = await whole(log, stored, { exitCode: 0 })
    const events = eventsOf(items)
    const cuts = events.filter(({ type }) => type === eventTypes.outputCut)
    expect(cuts).toHaveLength(1)
    const place = events.indexOf(cuts[0] as never)
    const join = (some: typeof events) =>
      Buffer.concat(some.flatMap(({ output }) => (output ? [output] : []))).toString()
    const [head, tail] = [join(events.slice(0, place)), join(events.slice(place))]
    expect(head).toBe(text.slice(0, 10_000))
    expect(text.endsWith(tail)).toBe(true)
    expect(tail.startsWith('line ')).toBe(true)
    expect(tail.length).toBeGreaterThan(65_000)
    expect(cuts[0]?.data).toMatchObject({
      value: { stream: 1, bytes: BigInt(text.length - head.length - tail.length) },
    })
    const end = events.at(-1)
    if (end?.data?.case !== 'processEnd') throw new Error('no end')
    const sha = createHash('sha256')
      .update(head + tail)
      .digest('hex')
    expect(Buffer.from(end.data.value.totals[0]?.sha256 ?? []).toString('hex')).toBe(sha)
  })

  test('E07 a little more than the limit is kept whole, without a marker', async () => {
    const { log, write, stored, clock } = aLog({ maxOutputBytes: 10 }, { prompt: true })
    write('0123456789abc\n')
    write('more\n')
    await clock.advance(1)
    const items = await whole(log, stored, { exitCode: 0 })
    expect(bytesOf(items, 'stdout').toString()).toBe('0123456789abc\nmore\n')
    expect(items.some(({ type }) => type === eventTypes.outputCut)).toBe(false)
  })
})

describe('failures', () => {
  test('E01 E11 a publish that failed for now comes again with the same items, in order, and the process is made to wait', async () => {
    const { log, write, publishes, last, clock, stored } = aLog({ maxBatchSize: 10 }, { heldBytesMax: 20_000 })
    let waits: { state: string } | undefined
    let text = ''
    for (let round = 0; waits === undefined; round++) {
      // What does not compress, so that the mark is reached.
      const chunk = Buffer.from(
        `${Buffer.from(Array.from({ length: 90 }, (_, at) => (at * round * 31) % 251)).toString('base64')}\n`,
      )
      const room = write(chunk.toString())
      text += chunk.toString()
      if (room !== undefined) waits = watch(room)
    }
    await settle()
    expect(waits.state).toBe('pending')
    const first = rangesOf(last().items)
    for (let failure = 0; failure < 20; failure++) {
      const [count, same] = [publishes.length, last().items]
      await last().fail()
      await clock.advance(5_000)
      expect(publishes).toHaveLength(count + 1)
      expect(last().items).toEqual(same)
    }
    expect(rangesOf(last().items)).toEqual(first)
    expect(waits.state).toBe('pending')
    for (let calls = 0; waits.state === 'pending' && calls < 50; calls++) await last().acknowledge()
    expect(waits.state).toBe('resolved')
    const finished = log.finish({ exitCode: 0 })
    const seen = watch(finished)
    while (seen.state === 'pending') await last().acknowledge()
    const items = await finished.then((closing) => [...stored, ...closingOf(closing)])
    expect(bytesOf(items, 'stdout').toString()).toBe(text)
    expect(items.map(({ sequence }) => sequence)).toEqual([...new Set(items.map(({ sequence }) => sequence))])
  })

  test('a publish that was refused ends the log: nothing more is stored, and whoever waits is told', async () => {
    const { log, write, publishes, last, clock } = aLog({ maxBatchSize: 2 }, { heldBytesMax: 100 })
    write(lines(2))
    const room = watch(write(lines(200)))
    const error = log.error('x')
    error.catch(() => {})
    await last().refuse()
    await expect(log.failed).rejects.toBeInstanceOf(Refused)
    expect(room.state).toBe('resolved')
    await expect(error).rejects.toMatchObject({ code: 'BATCHER_CLOSED' })
    expect(write('more\n')).toBeUndefined()
    await expect(log.finish({ exitCode: 0 })).rejects.toBeInstanceOf(Refused)
    await expect(log.error('late')).rejects.toBeInstanceOf(Refused)
    await clock.advance(60_000)
    expect(publishes).toHaveLength(1)
    expect(clock.timers).toBe(0)
  })

  test('a publish that is refused while the log ends rejects the end', async () => {
    const { log, write, last } = aLog({ maxBatchSize: 2 })
    write(lines(5))
    const finished = log.finish({ exitCode: 0 })
    finished.catch(() => {})
    await last().refuse()
    await expect(finished).rejects.toBeInstanceOf(Refused)
  })

  test('an abandoned log stores nothing more and leaves no timer', async () => {
    const { log, write, publishes, last, clock } = aLog({ maxBatchSize: 2 })
    write(lines(5))
    log.setWatched(true)
    log.abandon()
    await last().acknowledge()
    await clock.advance(60_000)
    expect(publishes).toHaveLength(1)
    expect(clock.timers).toBe(0)
    await expect(log.finish({ exitCode: 0 })).rejects.toMatchObject({ code: 'LOG_CLOSED' })
  })
})

describe('watched', () => {
  test('the first output of a quiet period is flushed at once, and the next batch collects during that flush', async () => {
    const { log, write, publishes, last, clock } = aLog()
    await clock.advance(1)
    await last().acknowledge()
    log.setWatched(true)
    write('a\n')
    expect(rangesOf(last().items)).toEqual(['2–2'])
    write('b\n')
    write('c\n')
    await clock.advance(100)
    expect(publishes).toHaveLength(2)
    await last().acknowledge()
    expect(rangesOf(last().items)).toEqual(['3–4'])
    expect(triggerOf(last().items[0] as never)).toBe(5)
    await last().acknowledge()
    await clock.advance(500)
    expect(publishes).toHaveLength(3)
    log.abandon()
  })

  test('what is open when somebody begins to watch is flushed at once', async () => {
    const { log, write, last, clock } = aLog({}, { prompt: true })
    await clock.advance(1)
    write('a\n')
    log.setWatched(true)
    expect(rangesOf(last().items)).toEqual(['2–2'])
    log.abandon()
  })

  test('a prompt without a line break is shown as soon as nothing else is', async () => {
    const { log, write, publishes, clock, stored } = aLog({}, { prompt: true })
    await clock.advance(1)
    log.setWatched(true)
    write('Hello\nName: ')
    await settle()
    expect(publishes.slice(1).map(({ items }) => rangesOf(items))).toEqual([['2–2'], ['3–3']])
    expect(bytesOf(stored, 'stdout').toString()).toBe('Hello\nName: ')
    log.abandon()
  })

  test('where each flush costs, two of them are a floor apart', async () => {
    const { log, write, publishes, clock } = aLog({}, { prompt: true, watchedFloorMs: 100 })
    await clock.advance(1_000)
    log.setWatched(true)
    for (let round = 0; round < 30; round++) {
      write(`${round}\n`)
      await clock.advance(10)
    }
    await clock.advance(100)
    expect(publishes.slice(1).map(({ at }) => at - 1_000)).toEqual([0, 100, 200, 300])
    expect(publishes.flatMap(({ items }) => items).at(-1)?.endSequence).toBe(31)
    log.abandon()
  })

  test('when nobody watches any more, output waits for company again', async () => {
    const { log, write, publishes, clock } = aLog({}, { prompt: true })
    await clock.advance(1)
    log.setWatched(true)
    log.setWatched(false)
    write('a\n')
    await clock.advance(1_999)
    expect(publishes).toHaveLength(1)
    log.abandon()
  })
})
