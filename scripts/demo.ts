import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { crc32 } from 'node:zlib'
import { createRuntime } from '../src/index.ts'

const directory = mkdtempSync(join(tmpdir(), 'millrace-demo-'))
const runtime = await createRuntime(
  { embedded: { directory }, jobs: { retry: { maxAttempts: 2, backoffBaseMs: 0 } } },
  { work: 'none' },
)
const { store, workerPrefix } = runtime

const params = { kind: 'handler', name: 'greet', input: { name: 'Ada' } } as const
const first = await store.enqueue({ queue: 'default', params, requestId: 'greeting-1' })
const again = await store.enqueue({ queue: 'default', params, requestId: 'greeting-1' })
console.log(`asked twice, made once: ${first.jobId === again.jobId}`)

const take = async () => {
  const [claim] = await store.claim({ queue: 'default', workerId: `${workerPrefix}1`, max: 1, waitMs: 5_000 })
  if (!claim) throw new Error('no job came')
  return claim
}
const end = (text: string) => {
  const payload = Buffer.from(text)
  const item = {
    sequence: 1,
    endSequence: 1,
    timestamp: 0,
    type: 4,
    payload,
    encoding: 0,
    crc: crc32(payload),
  } as const
  return { output: [], end: item }
}

const one = await take()
const failed = await store.settle(one.hold, { kind: 'failed', error: 'no luck' }, end('exit 1'))
console.log(`attempt ${one.hold.attempt} failed, so the job is ${failed.state} again`)

const two = await take()
await store.settle(two.hold, { kind: 'done', result: 'Hello, Ada!' }, end('exit 0'))
const job = await store.get(first.jobId)
console.log(`attempt ${job.attempt}: ${job.state} with ${JSON.stringify(job.result)}`)

const late = await store.settle(one.hold, { kind: 'done' }, end('exit 0')).catch((fault) => fault.code)
console.log(`the first worker comes back and is told ${late}`)
await runtime.stop()
rmSync(directory, { recursive: true })
