import { expect } from 'vitest'
import { type WorkerOptions, workerOptions } from '../../src/config/sections/worker.ts'
import type { EnqueueRequest, Job, JobParams } from '../../src/jobs/job.ts'
import { createNotices } from '../../src/jobs/notices.ts'
import type { Clock } from '../../src/kernel/clock.ts'
import { eventsTable, itemOf as itemOfRow, logId } from '../../src/log/keys.ts'
import { createSeededRandom } from '../../src/sim/seeded-random.ts'
import type { TelemetryEvent } from '../../src/telemetry/events.ts'
import type { Exec } from '../../src/worker/exec.ts'
import { createHandlers, type Handler } from '../../src/worker/handlers.ts'
import type { WorkerService } from '../../src/worker/service.ts'
import { createWorker, type Worker } from '../../src/worker/worker.ts'
import { aRequest, createHarness, type Harness, type HarnessOptions, type Node } from '../support/harness.ts'
import { createMemoryLog, type Entry, entryOf, itemOf, type MemoryLogOptions } from './memory-log.ts'
import { createSimExec, type SimExec, type SimProcess } from './sim-exec.ts'

export interface WorldOptions extends HarnessOptions {
  readonly handlers?: Readonly<Record<string, Handler>>
  readonly worker?: Partial<WorkerOptions>
  readonly log?: MemoryLogOptions
  readonly environment?: Readonly<Record<string, string>>
  /** Stands between the worker and the store. */
  readonly wrap?: (service: WorkerService) => WorkerService
  readonly clock?: (clock: Clock) => Clock
  readonly exec?: Exec
}

export interface World extends Harness {
  readonly a: Node
  readonly exec: SimExec
  readonly worker: Worker
  readonly service: WorkerService
  readonly calls: Record<keyof WorkerService, number>
  readonly logs: { count: number; newest?: { readonly watched: boolean } }
  readonly notices: ReturnType<typeof createNotices>
  readonly warnings: () => readonly string[]
  submit(params: JobParams, rest?: Partial<EnqueueRequest>): Promise<string>
  command(rest?: Partial<EnqueueRequest>): Promise<string>
  job(jobId: string): Promise<Job>
  /** The stored log of an attempt. */
  entries(jobId: string, attempt?: number): Promise<readonly Entry[]>
  /** Lets a little time pass, in which everything that needs none happens. */
  breathe(): Promise<void>
  /** From now on no log can be made. */
  breakLogs(): void
  /** The newest process. */
  process(): SimProcess
  /** Another worker over the same store. */
  another(worker?: Partial<WorkerOptions>): Worker
}

export const run = (name: string, input: unknown = null): JobParams => ({
  kind: 'handler',
  name,
  input: input as never,
})

/** A worker over the real store, on virtual time, with processes that do what the test says. */
export const createWorld = (given: WorldOptions = {}): World => {
  const harness = createHarness(given)
  const a = harness.node('a')
  const clock = given.clock?.(harness.clock) ?? harness.clock
  const exec = createSimExec(clock)
  const notices = createNotices()
  const calls = { claim: 0, renew: 0, publish: 0, settle: 0, release: 0, listen: 0 }
  const logs: World['logs'] = { count: 0 }
  let areLogsBroken = false
  const direct: WorkerService = {
    ...a.store,
    listen: (hold, listener) =>
      notices.listen(hold.jobId, ({ cancelRequested, watchedUntil }) =>
        listener({ cancelRequested: cancelRequested === true, watchedUntil }),
      ),
  }
  const service = given.wrap?.(direct) ?? direct
  const counted = Object.fromEntries(
    Object.keys(calls).map((verb) => {
      const name = verb as keyof WorkerService
      return [
        name,
        (...args: unknown[]) => {
          calls[name] += 1
          return (service[name] as (...args: unknown[]) => unknown)(...args)
        },
      ]
    }),
  ) as unknown as WorkerService
  const random = createSeededRandom(given.seed ?? 1, 'worker')

  const another = (options: Partial<WorkerOptions> = {}): Worker =>
    createWorker(
      {
        clock,
        random: random.fork(String(Object.keys(options))),
        emit: (event: TelemetryEvent) => void a.events.push(event),
        service: counted,
        exec: given.exec ?? exec,
        handlers: createHandlers(given.handlers),
        environment: given.environment ?? { PATH: '/bin:/usr/bin' },
        workerPrefix: 'test/',
        createLog: (claim, publish) => {
          logs.count += 1
          if (areLogsBroken) throw new TypeError('a bug')
          const log = createMemoryLog(clock, claim, publish, given.log)
          logs.newest = log
          return log
        },
        bareEnd: (_, end) => itemOf(1, 4, clock.now(), end),
      },
      workerOptions.parse({ queues: ['default'], ...given.worker, ...options }),
    )

  const world: World = {
    ...harness,
    a,
    exec,
    service: direct,
    calls,
    logs,
    notices,
    worker: another(),
    another,
    warnings: () => a.events.flatMap((event) => (event.name === 'warning' ? [event.text] : [])),
    submit: async (params, rest = {}) => (await a.store.enqueue(aRequest({ params, ...rest }))).jobId,
    command: (rest = {}) => world.submit({ kind: 'command', argv: ['program', 'argument'] }, rest),
    job: (jobId) => a.store.get(jobId),
    entries: async (jobId, attempt = 1) => {
      const { entries } = await harness.truth.query(eventsTable.name, {
        partition: logId(jobId, attempt),
        limit: 1_000,
      })
      const items = entries.map((row) => itemOfRow(row))
      return items.map((item) => {
        expect(item).toBeDefined()
        return entryOf(item as NonNullable<typeof item>)
      })
    },
    breakLogs: () => {
      areLogsBroken = true
    },
    breathe: () => harness.clock.advance(5),
    process: () => exec.processes.at(-1) as SimProcess,
  }
  return world
}
