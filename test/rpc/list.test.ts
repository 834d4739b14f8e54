import { describe, expect, test } from 'vitest'
import { JobState } from '../../api/gen/millrace/v1/job_pb.js'
import { timesOf } from '../../src/rpc/id-prefix.ts'
import { clients, startRig } from './rig.ts'
import { commandOf } from './wire-params.ts'

const params = commandOf(['true'])

describe('R1.14 listing', () => {
  test('pages through everything once, newest first, with filters', async () => {
    const { jobs } = clients(await startRig())
    const made: string[] = []
    for (let n = 0; n < 25; n++)
      made.push((await jobs.enqueueJob({ params, queue: n % 5 === 0 ? 'other' : 'default' })).jobId)
    await jobs.cancelJob({ jobId: made[1] as string })
    const seen: string[] = []
    let pageToken = ''
    do {
      const page = await jobs.listJobs({ pageSize: 7, pageToken })
      seen.push(...page.jobs.map(({ id }) => id))
      pageToken = page.nextPageToken
    } while (pageToken)
    expect(seen.sort()).toEqual([...made].sort())
    expect((await jobs.listJobs({ queue: 'other' })).jobs).toHaveLength(5)
    expect((await jobs.listJobs({ state: JobState.CANCELLED })).jobs.map(({ id }) => id)).toEqual([made[1]])
    expect((await jobs.listJobs({ to: { seconds: 5n, nanos: 0 } })).jobs).toEqual([])
  })

  test('an id is found by its beginning, whoever made it', async () => {
    const rig = await startRig()
    const { jobs } = clients(rig)
    const given = 'fedcba98-0000-4000-8000-000000000001'
    await jobs.enqueueJob({ params, jobId: given })
    const made: string[] = []
    for (let n = 0; n < 20; n++) made.push((await jobs.enqueueJob({ params })).jobId)
    const found = async (idPrefix: string, rest: object = {}) =>
      (await jobs.listJobs({ idPrefix, ...rest })).jobs.map(({ id }) => id)
    const last = made.at(-1) as string
    expect(await found(last)).toEqual([last])
    expect(await found(last.slice(0, 35))).toEqual([last])
    expect((await found(last.slice(0, 8))).sort()).toEqual(
      [...made].filter((id) => id.startsWith(last.slice(0, 8))).sort(),
    )
    expect(await found('fedc')).toEqual([given])
    expect(await found('fedcba98-0000-4')).toEqual([given])
    expect(await found(given)).toEqual([given])
    expect(await found(given, { queue: 'other' })).toEqual([])
    expect(await found(given, { state: JobState.FAILED })).toEqual([])
    expect(await found('00000000-0000-7000-8000-000000000000')).toEqual([])
    expect(await found('01')).toHaveLength(20)
  })

  test('a page never has more than was asked for, and the next one goes on behind it', async () => {
    const { jobs } = clients(await startRig())
    const made: string[] = []
    for (let n = 0; n < 10; n++) made.push((await jobs.enqueueJob({ params })).jobId)
    const prefix = (made[0] as string).slice(0, 6)
    const seen: string[] = []
    let pageToken = ''
    do {
      const page = await jobs.listJobs({ idPrefix: prefix, pageSize: 3, pageToken, ascending: true })
      expect(page.jobs.length).toBeLessThanOrEqual(3)
      seen.push(...page.jobs.map(({ id }) => id))
      pageToken = page.nextPageToken
    } while (pageToken)
    expect(seen).toEqual(made)
  })

  test('a prefix is a range of times only if it can be one', () => {
    const now = 1_750_000_000_000
    const id = '01977420-dc00-7000-8000-000000000000'
    const range = timesOf(id.slice(0, 13), now)
    expect(range).toEqual({ from: 0x01977420dc00 - 600_000, to: 0x01977420dc00 })
    expect(timesOf('0197', now)).toBeUndefined()
    expect(timesOf('01977420-dc00-4', now)).toBeUndefined()
    expect(timesOf('fedcba98', now)).toBeUndefined()
    expect(timesOf('00000000', now)).toBeUndefined()
  })
})
