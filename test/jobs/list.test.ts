import { describe, expect, test } from 'vitest'
import type { ListRequest } from '../../src/jobs/list.ts'
import type { JobStore } from '../../src/jobs/store.ts'
import { aClosing, aRequest, claimOne, createHarness } from '../support/harness.ts'

const listAll = async (store: JobStore, request: Omit<ListRequest, 'cursor'>): Promise<string[][]> => {
  const pages: string[][] = []
  let cursor: string | undefined
  for (let page = 0; page < 200; page++) {
    const answer = await store.list(cursor === undefined ? request : { ...request, cursor })
    pages.push(answer.jobs.map((job) => job.id))
    cursor = answer.cursor
    if (cursor === undefined) return pages
  }
  throw new Error('the listing does not end')
}

/** Sixty jobs, one a second, every third in the other queue. */
const filled = async () => {
  const harness = createHarness()
  const { store } = harness.node('a')
  const start = harness.clock.now()
  const ids: string[] = []
  for (let n = 0; n < 60; n++) {
    ids.push((await store.enqueue(aRequest({ queue: n % 3 === 0 ? 'other' : 'default' }))).jobId)
    await harness.clock.advance(1_000)
  }
  return { harness, store, start, ids }
}

describe('listing', () => {
  test('gives every job once, newest first, in pages that join', async () => {
    const { store, ids } = await filled()
    for (const limit of [1, 7, 60, 1_000]) {
      const pages = await listAll(store, { limit })
      expect(pages.flat()).toEqual(ids.toReversed())
      expect(pages.every((page) => page.length <= limit)).toBe(true)
    }
    expect((await listAll(store, { limit: 13, ascending: true })).flat()).toEqual(ids)
  })

  test('filters by queue, by time and by state', async () => {
    const { store, start, ids } = await filled()
    const others = ids.filter((_, n) => n % 3 === 0)
    expect((await listAll(store, { limit: 7, queue: 'other' })).flat()).toEqual(others.toReversed())
    const between = { from: start + 10_000, to: start + 19_000 }
    expect((await listAll(store, { limit: 4, ...between, ascending: true })).flat()).toEqual(ids.slice(10, 20))
    const { hold } = await claimOne({ store })
    await store.settle(hold, { kind: 'done' }, aClosing(hold))
    expect((await listAll(store, { limit: 5, state: 'COMPLETED' })).flat()).toEqual([hold.jobId])
    expect((await listAll(store, { limit: 5, state: 'FAILED' })).flat()).toEqual([])
  })

  test('jobs that come in between do not shift the pages', async () => {
    const { harness, store, ids } = await filled()
    const first = await store.list({ limit: 20 })
    for (let n = 0; n < 30; n++) await store.enqueue(aRequest())
    await harness.clock.advance(1)
    const second = await store.list({ limit: 20, cursor: first.cursor as string })
    expect([...first.jobs, ...second.jobs].map((job) => job.id)).toEqual(ids.toReversed().slice(0, 40))
  })

  test('goes on past rows that are gone', async () => {
    const { harness, store, ids } = await filled()
    for (const id of ids.slice(10, 55)) await store.cancel(id)
    await harness.clock.advance(31 * 24 * 60 * 60_000)
    const left = [...ids.slice(0, 10), ...ids.slice(55)]
    expect((await listAll(store, { limit: 3 })).flat()).toEqual(left.toReversed())
    await harness.truth.purge(harness.clock.now() / 1000, 1_000)
    expect((await listAll(store, { limit: 3 })).flat()).toEqual(left.toReversed())
  })

  test('M21 a cursor that was tampered with, or belongs to another listing, is refused', async () => {
    const { store } = await filled()
    const { cursor = '' } = await store.list({ limit: 5 })
    const flipped = `${cursor.slice(0, -2)}${cursor.endsWith('AA') ? 'BB' : 'AA'}`
    for (const wrong of [flipped, '', 'x', `${cursor}=`, cursor.slice(1), `k2.${cursor.split('.')[1]}`]) {
      await expect(store.list({ limit: 5, cursor: wrong })).rejects.toMatchObject({ code: 'CURSOR_REFUSED' })
    }
    await expect(store.list({ limit: 5, queue: 'other', cursor })).rejects.toMatchObject({ code: 'CURSOR_REFUSED' })
    await expect(store.list({ limit: 5, state: 'FAILED', cursor })).rejects.toMatchObject({ code: 'CURSOR_REFUSED' })
    await expect(store.list({ limit: 0 })).rejects.toMatchObject({ field: 'limit' })
    await expect(store.list({ limit: 5, queue: 'nowhere' })).rejects.toMatchObject({ code: 'QUEUE_UNKNOWN' })
  })
})
