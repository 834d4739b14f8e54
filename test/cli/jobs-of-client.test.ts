import { expect, test } from 'vitest'
import { type ClientVerbs, type FollowedEvent, jobsOf } from '../../src/cli/jobs-of-client.ts'
import { aJob, output } from './support/fake.ts'

const place = { sequence: 1, timestamp: 5 }

const clientOf = (followed: readonly FollowedEvent[]): ClientVerbs => ({
  enqueue: () => Promise.reject(new Error('not asked for')),
  get: async () => ({ ...aJob(), watchedUntil: undefined }),
  listPages: async function* () {
    yield { jobs: [{ ...aJob(), watchedUntil: undefined }], cursor: 'next' }
    throw new Error('only one page was asked for')
  },
  cancel: () => Promise.reject(new Error('not asked for')),
  retry: async () => ({ run: 2 }),
  deadLetters: async () => [],
  resolveId: async (prefix) => prefix,
  follow: async function* () {
    yield* followed
  },
  close: () => {},
})

test('entries of the API become events of the command line, and only what is shown of them is taken over', async () => {
  const start = { ...place, kind: 'processStart', workerId: 'w', pid: 7, argv: ['--password', 'hunter2'] } as const
  const jobs = jobsOf(
    clientOf([
      { attempt: 1, event: start },
      { attempt: 1, event: { ...place, sequence: 2, kind: 'output', stream: 'stderr', output: Buffer.from('x') } },
      { attempt: 1, event: { ...place, kind: 'unknown' } },
      { attempt: 1, marker: { kind: 'keepAlive' } },
      { attempt: 1, marker: { kind: 'attemptEnded', lastSequence: 2, complete: true } },
      { attempt: 1, marker: { kind: 'jobEnded', state: 'COMPLETED', result: null, error: undefined } },
    ]),
  )
  const events = []
  for await (const event of jobs.follow({ jobId: 'a', grain: 'chunk' })) events.push(event)
  expect(events).toEqual([
    { kind: 'processStart', attempt: 1, ...place, workerId: 'w', pid: 7 },
    {
      kind: 'output',
      attempt: 1,
      sequence: 2,
      endSequence: 2,
      timestamp: 5,
      stream: 'stderr',
      bytes: Buffer.from('x'),
    },
    { kind: 'attemptEnded', attempt: 1, sequence: 0, timestamp: 0, lastSequence: 2, complete: true },
    { kind: 'jobEnded', attempt: 1, sequence: 0, timestamp: 0, state: 'COMPLETED', result: null, error: undefined },
  ])
  expect(JSON.stringify(events)).not.toContain('hunter2')
})

test('a page is a page, and chunks come from where they are cheaper', async () => {
  const asked: unknown[] = []
  const chunk = output(1, 'x')
  const jobs = jobsOf(clientOf([]), async function* (request) {
    asked.push(request)
    yield chunk
  })
  expect(await jobs.list({ limit: 1 })).toMatchObject({ cursor: 'next' })
  const seen = []
  for await (const event of jobs.follow({ jobId: 'a', grain: 'chunk' })) seen.push(event)
  for await (const event of jobs.follow({ jobId: 'b', grain: 'line' })) seen.push(event)
  expect(seen).toEqual([chunk])
  expect(asked).toEqual([{ jobId: 'a' }])
})
