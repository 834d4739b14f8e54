import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createRuntime, type Handler } from '../src/index.ts'

const greet: Handler = (ctx, name) => {
  ctx.log(`Hello, ${name}!`)
  if (ctx.attempt === 1) throw new Error('no luck')
  return { attempts: ctx.attempt }
}
const directory = mkdtempSync(join(tmpdir(), 'millrace-demo-'))
const runtime = await createRuntime({ embedded: { directory } }, { handlers: { greet } })

const params = { kind: 'handler', name: 'greet', input: 'Ada' } as const
const { jobId } = await runtime.enqueue({ queue: 'default', params, retry: { maxAttempts: 2, backoffBaseMs: 10 } })
for await (const { attempt, ...said } of runtime.follow(jobId)) {
  if ('marker' in said) {
    if (said.marker.kind === 'jobEnded') console.log(said.marker.state, said.marker.result)
  } else if (said.event.kind === 'output') process.stdout.write(said.event.output)
  else if (said.event.kind === 'processEnd') console.log(`attempt ${attempt}: ${said.event.error ?? 'done'}`)
}
await runtime.stop()
rmSync(directory, { recursive: true })
