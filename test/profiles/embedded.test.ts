import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import { createRuntime } from '../../src/index.ts'
import { systemRandom } from '../../src/kernel/random.ts'
import { createShiftedClock, storeContract } from '../contract/store.ts'
import { aClosing, aRequest } from '../support/harness.ts'

const folders: string[] = []
const aDirectory = () => {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-test-'))
  folders.push(folder)
  return join(folder, 'data')
}
afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true })
})

storeContract('the embedded profile', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-test-'))
  return {
    options: { embedded: { directory: join(folder, 'data') } },
    processes: 1,
    end: async () => rmSync(folder, { recursive: true, force: true }),
  }
})

storeContract('the memory profile', async () => ({
  options: { profile: 'memory' },
  processes: 1,
  end: async () => {},
}))

describe('the embedded profile', () => {
  test('jobs, messages and the signing key are there again after a restart', async () => {
    const options = { embedded: { directory: aDirectory() } }
    const first = await createRuntime(options, { work: 'none' })
    const { jobId } = await first.store.enqueue(aRequest())
    const hold = { jobId, queue: 'default', attempt: 1 }
    const token = first.tokens.issue(hold, 60_000)
    await first.stop()
    const second = await createRuntime(options, { work: 'none' })
    expect(second.tokens.verify(token)).toEqual(hold)
    const [claim] = await second.store.claim({ queue: 'default', workerId: 'w', max: 1, waitMs: 5_000 })
    expect(claim?.hold).toEqual(hold)
    await second.stop()
    await second.stop()
    await expect(second.store.get(jobId)).rejects.toMatchObject({ code: 'TABLE_CLOSED' })
  })

  test('a runtime that cannot start lets go of its directory', async () => {
    const embedded = { directory: aDirectory() }
    const random = {
      ...systemRandom,
      bytes: (length: number) => {
        if (length === 32) throw new Error('no chance of a signing key')
        return systemRandom.bytes(length)
      },
    }
    await expect(createRuntime({ embedded }, { random })).rejects.toThrow('no chance of a signing key')
    const runtime = await createRuntime({ embedded }, { work: 'none' })
    await runtime.stop()
  })

  test('two runtimes live side by side in one process, each with its own directory', async () => {
    const runtimes = await Promise.all([1, 2].map(() => createRuntime({ embedded: { directory: aDirectory() } })))
    const made = await Promise.all(runtimes.map(({ store }) => store.enqueue(aRequest({ requestId: 'same' }))))
    expect(made.every(({ created }) => created)).toBe(true)
    await Promise.all(runtimes.map((runtime) => runtime.stop()))
  })

  test('expired jobs are deleted by the sweeper, in bounded steps', async () => {
    const clock = createShiftedClock()
    const runtime = await createRuntime(
      { embedded: { directory: aDirectory() }, jobs: { retentionMs: 60_000 } },
      { clock, work: 'none' },
    )
    const { store } = runtime
    const { jobId } = await store.enqueue(aRequest())
    const [claim] = await store.claim({ queue: 'default', workerId: 'w', max: 1, waitMs: 5_000 })
    if (!claim) throw new Error('no job came')
    await store.settle(claim.hold, { kind: 'done' }, aClosing(claim.hold))
    clock.shift(15 * 24 * 60 * 60_000)
    await expect(store.get(jobId)).rejects.toMatchObject({ code: 'JOB_UNKNOWN' })
    expect((await store.list({ limit: 10 })).jobs).toEqual([])
    await runtime.stop()
  })
})
