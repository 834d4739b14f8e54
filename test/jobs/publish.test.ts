import { crc32 } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import type { StoredItem } from '../../src/log/event.ts'
import { eventsTable, itemOf, logId } from '../../src/log/keys.ts'
import { aClosing, aRequest, claimOne, createHarness } from '../support/harness.ts'

const anItem = (sequence: number, rest: Partial<StoredItem> & { text?: string } = {}): StoredItem => {
  const payload = rest.payload ?? Buffer.from(rest.text ?? `event ${sequence}`)
  return { sequence, endSequence: sequence, timestamp: 0, type: 1, payload, encoding: 0, crc: crc32(payload), ...rest }
}

const running = async (options: Parameters<typeof createHarness>[0] = {}) => {
  const harness = createHarness(options)
  const node = harness.node('a')
  const { jobId } = await node.store.enqueue(aRequest())
  const { hold } = await claimOne(node)
  const stored = async () => {
    const page = await harness.truth.query(eventsTable.name, { partition: logId(jobId, hold.attempt), limit: 100 })
    return page.entries.map((row) => itemOf(row) as StoredItem)
  }
  return { harness, node, jobId, hold, stored }
}

describe('publishing', () => {
  test('what was given is stored, byte for byte, in the log of the attempt', async () => {
    const { node, hold, stored } = await running()
    const items = [anItem(1), anItem(2, { endSequence: 51, type: 2, encoding: 1 }), anItem(52)]
    await node.store.publish(hold, items)
    expect(await stored()).toEqual(items.map((item) => ({ ...item, payload: Buffer.from(item.payload) })))
  })

  test('E11 the same items twice are there once', async () => {
    const { node, hold, stored } = await running()
    await node.store.publish(hold, [anItem(1), anItem(2)])
    await node.store.publish(hold, [anItem(1), anItem(2)])
    expect((await stored()).map(({ sequence }) => sequence)).toEqual([1, 2])
  })

  test('C01 a worker whose attempt is over stores nothing', async () => {
    const { node, hold, stored } = await running()
    await node.store.settle(hold, { kind: 'done' }, aClosing(hold))
    await expect(node.store.publish(hold, [anItem(9)])).rejects.toMatchObject({ code: 'CLAIM_LOST' })
    await expect(node.store.publish({ ...hold, attempt: 2 }, [anItem(1)])).rejects.toMatchObject({ code: 'CLAIM_LOST' })
    expect((await stored()).map(({ sequence }) => sequence)).toEqual([2])
  })

  test('E19 a batch of more events than the job allows is refused, and nothing of the call is stored', async () => {
    const { node, hold, stored } = await running({
      jobs: { execution: { maxBatchSize: 50, batchSizeBound: 50 } as never },
    })
    const fits = anItem(1, { endSequence: 50 })
    await node.store.publish(hold, [fits])
    const tooMany = node.store.publish(hold, [anItem(51), anItem(52, { endSequence: 102 })])
    await expect(tooMany).rejects.toMatchObject({ code: 'INPUT_INVALID', field: 'items', limit: 50 })
    expect(await stored()).toHaveLength(1)
  })

  test('E19 the limits of a call and of an item are exact', async () => {
    const { node, hold } = await running()
    const many = (count: number) => Array.from({ length: count }, (_, index) => anItem(index + 1))
    await node.store.publish(hold, many(25))
    await expect(node.store.publish(hold, many(26))).rejects.toMatchObject({ field: 'items', limit: 25 })
    const payload = Buffer.alloc(390 * 1_024)
    await node.store.publish(hold, [anItem(26, { payload })])
    const larger = Buffer.alloc(payload.length + 1)
    await expect(node.store.publish(hold, [anItem(27, { payload: larger })])).rejects.toMatchObject({
      limit: payload.length,
    })
  })

  test.each([
    ['0', anItem(0)],
    ['negative', anItem(-1)],
    ['E23 beyond what a number can hold', anItem(2 ** 53)],
    ['fractional', anItem(1.5)],
    ['backwards', anItem(5, { endSequence: 4 })],
  ])('a range of sequences that is %s is refused', async (_, item) => {
    const { node, hold } = await running()
    await expect(node.store.publish(hold, [item])).rejects.toMatchObject({ code: 'INPUT_INVALID' })
  })

  test('items of one call must rise and not overlap', async () => {
    const { node, hold } = await running()
    const overlapping = [anItem(1, { endSequence: 10 }), anItem(10)]
    await expect(node.store.publish(hold, overlapping)).rejects.toMatchObject({ code: 'INPUT_INVALID' })
  })

  test('its answer tells of a cancel and of somebody who watches', async () => {
    const { harness, node, jobId, hold } = await running()
    expect(await node.store.publish(hold, [anItem(1)])).toEqual({ cancelRequested: false, watchedUntil: undefined })
    await node.store.watch(jobId)
    await node.store.cancel(jobId)
    expect(await node.store.publish(hold, [anItem(2)])).toEqual({
      cancelRequested: true,
      watchedUntil: harness.clock.now() + 60_000,
    })
  })

  test('E01 E02 items that were throttled are stored by a later call, those that were stored stay', async () => {
    const { harness, hold, stored } = await running({ seed: 5 })
    const troubled = harness.node('b', { throttled: 0.5, partial: 0.5 })
    let failures = 0
    const items = [anItem(1), anItem(2), anItem(3)]
    for (let round = 0; round < 50; round++) {
      const fault = await harness.run(
        troubled.store.publish(hold, items).then(
          () => undefined,
          (error) => error,
        ),
      )
      if (fault === undefined) break
      expect(fault).toMatchObject({ retry: 'later' })
      failures += 1
    }
    expect(failures).toBeGreaterThan(0)
    expect((await stored()).map(({ sequence }) => sequence)).toEqual([1, 2, 3])
  })
})

describe('watching', () => {
  test('a job that waits is marked too, so that its first output is stored at once', async () => {
    const harness = createHarness()
    const node = harness.node('a')
    const { jobId } = await node.store.enqueue(aRequest())
    await node.store.watch(jobId)
    expect((await node.store.get(jobId)).watchedUntil).toBe(harness.clock.now() + 60_000)
  })

  test('a job that has ended is not touched, one that is not there is unknown', async () => {
    const { node, jobId, hold, harness } = await running()
    await node.store.settle(hold, { kind: 'done' }, aClosing(hold))
    const before = await harness.row(jobId)
    await node.store.watch(jobId)
    expect(await harness.row(jobId)).toEqual(before)
    const nobody = jobId.replace(/.$/, (digit) => (digit === '0' ? '1' : '0'))
    await expect(node.store.watch(nobody)).rejects.toMatchObject({ code: 'JOB_UNKNOWN' })
  })
})
