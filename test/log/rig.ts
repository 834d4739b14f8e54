import { type ExecutionConfig, executionOptions } from '../../src/config/sections/jobs.ts'
import { Fault } from '../../src/kernel/fault.ts'
import { type AppendOptions, createAttemptLog } from '../../src/log/append.ts'
import type { AttemptLog } from '../../src/log/attempt-log.ts'
import { eventTypes, type StoredItem, type StreamName } from '../../src/log/event.ts'
import { type Deflate, deflateNow } from '../../src/log/payload.ts'
import { type LogEvent, unpackItem } from '../../src/log/stored-batch.ts'
import { createSeededRandom } from '../../src/sim/seeded-random.ts'
import { createVirtualClock, settle, type VirtualClock } from '../../src/sim/virtual-clock.ts'
import type { TelemetryEvent } from '../../src/telemetry/events.ts'

export class Refused extends Fault {
  readonly code = 'TEST_REFUSED'
  readonly retry = 'never'
}

export class Throttled extends Fault {
  readonly code = 'TEST_THROTTLED'
  readonly retry = 'later'
}

/** A call of publish that is under way, and the ways in which it can end. */
export interface Publish {
  readonly items: readonly StoredItem[]
  readonly at: number
  acknowledge(): Promise<void>
  fail(): Promise<void>
  refuse(): Promise<void>
}

export interface LogRig {
  readonly log: AttemptLog
  readonly clock: VirtualClock
  readonly publishes: Publish[]
  /** What was acknowledged, in the order of its calls. */
  readonly stored: StoredItem[]
  readonly events: TelemetryEvent[]
  last(): Publish
  write(text: string, stream?: StreamName): Promise<void> | undefined
}

export interface LogRigOptions extends Partial<AppendOptions> {
  /** Publishes are acknowledged in the next microtask instead of when the test says so. */
  readonly prompt?: boolean
  readonly deflate?: Deflate
}

export const someConfig = (config: Partial<ExecutionConfig> = {}): ExecutionConfig => executionOptions.parse(config)

/** The log of an attempt on virtual time, started. */
export const aLog = (config: Partial<ExecutionConfig> = {}, options: LogRigOptions = {}): LogRig => {
  const clock = createVirtualClock()
  const publishes: Publish[] = []
  const stored: StoredItem[] = []
  const events: TelemetryEvent[] = []
  const { prompt = false, deflate = deflateNow, ...rest } = options
  const publish = (items: readonly StoredItem[]): Promise<void> =>
    new Promise((resolve, reject) => {
      const end = (how: () => void): Promise<void> => {
        how()
        return settle()
      }
      const acknowledge = () => {
        stored.push(...items)
        resolve()
      }
      publishes.push({
        items,
        at: clock.monotonic(),
        acknowledge: () => end(acknowledge),
        fail: () => end(() => reject(new Throttled('not now'))),
        refuse: () => end(() => reject(new Refused('refused'))),
      })
      if (prompt) queueMicrotask(acknowledge)
    })
  const log = createAttemptLog(
    { clock, random: createSeededRandom('log'), emit: (event) => events.push(event), publish, deflate },
    someConfig(config),
    { jobId: 'job', attempt: 1, ...rest },
  )
  log.start({ attempt: 1, workerId: 'worker', pid: 7, argv: ['make'] })
  return {
    log,
    clock,
    publishes,
    stored,
    events,
    last: () => publishes.at(-1) as Publish,
    write: (text, stream = 'stdout') => log.output(stream, Buffer.from(text)),
  }
}

/** The events of items, in order; fails on damage. */
export const eventsOf = (items: readonly StoredItem[], from = 0): readonly LogEvent[] =>
  items.flatMap((item) => {
    const unpacked = unpackItem(item, from)
    if ('damage' in unpacked) throw new Error(`item ${item.sequence}: ${unpacked.damage}`)
    return [...unpacked.events]
  })

/** What the outputs of a stream join to. */
export const bytesOf = (items: readonly StoredItem[], stream: StreamName): Buffer =>
  Buffer.concat(eventsOf(items).flatMap((event) => (event.stream === stream && event.output ? [event.output] : [])))

/** `1 PROCESS_START`, `2–51` … */
export const rangesOf = (items: readonly StoredItem[]): readonly string[] =>
  items.map(({ sequence, endSequence, type }) =>
    type === eventTypes.outputBatch ? `${sequence}–${endSequence}` : `${sequence} ${nameOf(type)}`,
  )

const nameOf = (type: number): string =>
  Object.entries(eventTypes).find(([, number]) => number === type)?.[0] ?? String(type)

export const lines = (count: number, from = 1): string =>
  Array.from({ length: count }, (_, index) => `line ${from + index}\n`).join('')

/** The output and the end that settle together. */
export const closingOf = (closing: Awaited<ReturnType<AttemptLog['finish']>>): readonly StoredItem[] => [
  ...closing.output,
  closing.end,
]
