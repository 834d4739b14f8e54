import { describe, expect, test } from 'vitest'
import { createNotices, type Notice } from '../../src/jobs/notices.ts'
import { tellingStore } from '../../src/jobs/telling-store.ts'
import { aClosing, aRequest, claimOne, createHarness } from '../support/harness.ts'

const rig = async () => {
  const harness = createHarness()
  const notices = createNotices()
  const { store: bare } = harness.node('a')
  const store = tellingStore(bare, notices, harness.clock)
  const { jobId } = await store.enqueue(aRequest())
  const heard: Notice[] = []
  const leave = notices.listen(jobId, (notice) => heard.push(notice))
  return { harness, notices, store, jobId, heard, leave }
}

describe('notices', () => {
  test('a cancel of a running job is told at once to whoever runs it here', async () => {
    const { store, jobId, heard } = await rig()
    await claimOne({ store })
    await store.cancel(jobId)
    expect(heard).toEqual([{ cancelRequested: true }])
  })

  test('a cancel of a waiting job and a redrive are told as changes', async () => {
    const { store, jobId, heard } = await rig()
    await store.cancel(jobId)
    await store.redrive(jobId, 1)
    expect(heard).toEqual([{ changed: true }, { changed: true }])
  })

  test('that somebody watches is told with how long that counts', async () => {
    const { harness, store, jobId, heard } = await rig()
    await store.watch(jobId)
    expect(heard).toEqual([{ watchedUntil: harness.clock.now() + 60_000 }])
  })

  test('what was refused is not told', async () => {
    const { store, jobId, heard } = await rig()
    const { hold } = await claimOne({ store })
    await store.settle(hold, { kind: 'done' }, aClosing(hold))
    await expect(store.redrive(jobId, 1)).rejects.toMatchObject({ code: 'JOB_NOT_READY' })
    expect(heard).toEqual([])
  })

  test('whoever has left hears nothing more, and a listener may leave while it is told', async () => {
    const { notices, jobId, heard, leave } = await rig()
    const others: string[] = []
    const first = notices.listen(jobId, () => {
      others.push('first')
      first()
    })
    notices.listen(jobId, () => others.push('second'))
    notices.tell(jobId, { changed: true })
    notices.tell(jobId, { changed: true })
    expect(others).toEqual(['first', 'second', 'second'])
    leave()
    notices.tell(jobId, { changed: true })
    expect(heard).toHaveLength(2)
  })
})
