// The real runtime on the embedded store in a folder of its own, with the API open to the other processes of a benchmark.

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createRuntime, type Runtime, type RuntimeDeps } from '../../src/runtime.ts'

export interface Rig {
  readonly runtime: Runtime
  readonly at: Place
  end(): Promise<void>
}

/** Where the API is, and what it wants to be shown. */
export interface Place {
  readonly address: string
  readonly token: string
}

const token = 'a-token-for-the-benchmarks-alone'

export const startRig = async (given: Readonly<Record<string, unknown>> = {}, deps: RuntimeDeps = {}): Promise<Rig> => {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-bench-'))
  const runtime = await createRuntime(
    { ...given, embedded: { directory: folder }, server: { port: 0 } },
    { environment: { PATH: process.env['PATH'] ?? '' }, ...deps },
  )
  const server = await runtime.serve({ localToken: token })
  const [first] = server.addresses()
  if (first === undefined || 'path' in first) throw new Error('the API has no port')
  return {
    runtime,
    at: { address: `http://${first.host}:${first.port}`, token },
    end: async () => {
      await runtime.stop()
      rmSync(folder, { recursive: true })
    },
  }
}

/** Resolves with each job when its end is durable, whichever of the two is asked for first. */
export const createEnds = () => {
  const waiting = new Map<string, () => void>()
  const ended = new Set<string>()
  return {
    emit: (event: { readonly name: string; readonly jobId?: string }): void => {
      if (event.name !== 'job.settled' || event.jobId === undefined) return
      const resolve = waiting.get(event.jobId)
      if (resolve === undefined) ended.add(event.jobId)
      else {
        waiting.delete(event.jobId)
        resolve()
      }
    },
    of: (jobId: string): Promise<void> =>
      ended.delete(jobId) ? Promise.resolve() : new Promise((resolve) => waiting.set(jobId, resolve)),
  }
}
