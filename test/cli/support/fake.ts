import type { Backend, CliContext, LocalRuntime, Output, Provisioning, Service } from '../../../src/cli/context.ts'
import type { FollowRequest, JobsClient, JobView, SubmitRequest } from '../../../src/cli/jobs-client.ts'
import type { LogEvent, OutputEvent } from '../../../src/cli/log-event.ts'
import type { Signals, StopSignal } from '../../../src/cli/signals.ts'
// Commands load it when they need it; here it is loaded before time is stepped.
import '../../../src/config/sources.ts'
import { loadOptions } from '../../../src/config/load.ts'
import { Fault } from '../../../src/kernel/fault.ts'
import { createSeededRandom } from '../../../src/sim/seeded-random.ts'
import { createVirtualClock, settle, type VirtualClock } from '../../../src/sim/virtual-clock.ts'

/** A fault with any code, as a server would give it. */
export class AnyFault extends Fault {
  readonly code: string
  readonly retry = 'never'
  constructor(code: string, message = `a fault: ${code}`) {
    super(message)
    this.code = code
  }
}

export interface FakeOutput extends Output {
  readonly chunks: Buffer[]
  readonly text: () => string
  /** From now on nobody reads it. */
  close(fault: Error): void
}

const fakeOutput = (isTerminal = false, columns = 80): FakeOutput => {
  const chunks: Buffer[] = []
  let closed: Error | undefined
  return {
    isTerminal,
    columns,
    chunks,
    text: () => Buffer.concat(chunks).toString(),
    write: (bytes) => {
      if (closed) return Promise.reject(closed)
      chunks.push(Buffer.from(bytes))
      return undefined
    },
    close: (fault) => {
      closed = fault
    },
  }
}

const fakeSignals = () => {
  const listeners = new Set<(signal: StopSignal) => void>()
  const signals: Signals = {
    listen: (listener) => {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
  }
  return {
    signals,
    send: (signal: StopSignal) => {
      for (const listener of [...listeners]) listener(signal)
    },
    get listeners() {
      return listeners.size
    },
  }
}

export const aJobId = '0197a1b2-c3d4-7000-8000-000000000001'
const { jobs } = loadOptions({})

export const aJob = (rest: Partial<JobView> = {}): JobView => ({
  id: aJobId,
  queue: 'default',
  priority: 'normal',
  state: 'COMPLETED',
  params: { kind: 'command', argv: ['make', 'all'] },
  attempt: 1,
  run: 1,
  notBefore: 1_750_000_000_000,
  timeoutMs: undefined,
  execution: jobs.execution,
  retry: jobs.retry,
  failedAttempts: 0,
  lostAttempts: 0,
  workerId: 'w1',
  requestId: 'r1',
  cancelRequestedAt: undefined,
  createdAt: 1_750_000_000_000,
  updatedAt: 1_750_000_005_000,
  result: undefined,
  error: undefined,
  ...rest,
})

export const output = (sequence: number, text: string | Uint8Array, rest: Partial<OutputEvent> = {}): OutputEvent => ({
  kind: 'output',
  attempt: 1,
  sequence,
  endSequence: sequence,
  timestamp: 1_750_000_000_000 + sequence * 10,
  stream: 'stdout',
  bytes: Buffer.from(text),
  ...rest,
})
const place = (sequence: number, attempt = 1) => ({ attempt, sequence, timestamp: 1_750_000_000_000 + sequence * 10 })
export const started = (attempt = 1): LogEvent => ({ kind: 'processStart', workerId: 'w1', ...place(1, attempt) })
export const endedWith = (
  sequence: number,
  rest: { exitCode?: number; signal?: string; error?: string; attempt?: number; timestamp?: number } = {},
): LogEvent => ({ kind: 'processEnd', ...place(sequence), ...rest })
export const jobEnded = (state: string, error?: string): LogEvent => ({
  kind: 'jobEnded',
  attempt: 1,
  sequence: 0,
  timestamp: 0,
  state,
  error,
})
export const attemptEnded = (lastSequence: number, complete = true, attempt = 1): LogEvent => ({
  kind: 'attemptEnded',
  attempt,
  sequence: 0,
  timestamp: 0,
  lastSequence,
  complete,
})

export interface FakeClient extends JobsClient {
  readonly calls: { readonly verb: string; readonly given: unknown }[]
}

/** A client whose streams are given: arrays, or generators that wait for what the test does. */
export const fakeClient = (
  given: Partial<JobsClient> & {
    readonly job?: JobView
    readonly log?: (request: FollowRequest) => Iterable<LogEvent> | AsyncIterable<LogEvent>
  } = {},
): FakeClient => {
  const calls: FakeClient['calls'] = []
  const noted =
    <Args extends unknown[], Answer>(verb: string, answer: (...args: Args) => Answer) =>
    (...args: Args): Answer => {
      calls.push({ verb, given: args.length === 1 ? args[0] : args })
      return answer(...args)
    }
  const { job = aJob(), log = () => [], ...own } = given
  return {
    calls,
    enqueue: noted('enqueue', own.enqueue ?? (async (_: SubmitRequest) => ({ jobId: job.id, created: true }))),
    get: noted('get', own.get ?? (async () => job)),
    list: noted('list', own.list ?? (async () => ({ jobs: [job] }))),
    cancel: noted('cancel', own.cancel ?? (async () => ({ state: 'RUNNING', requested: true }) as const)),
    retry: noted('retry', own.retry ?? (async (_: string, run?: number) => ({ run: (run ?? 1) + 1 }))),
    deadLetters: noted('deadLetters', own.deadLetters ?? (async () => [])),
    resolveId: noted('resolveId', own.resolveId ?? (async () => job.id)),
    follow: noted('follow', async function* (request: FollowRequest) {
      yield* log(request)
    }),
    close: noted('close', own.close ?? (async () => {})),
  }
}

export const fakeRuntime = (
  client: FakeClient,
  rest: Partial<Pick<LocalRuntime, 'leftBehind' | 'guests' | 'stopNow'>> = {},
): LocalRuntime & FakeClient => ({
  ...client,
  leftBehind: async () => 0,
  guests: () => ({ count: 0, ended: Promise.resolve() }),
  stopNow: async () => {
    client.calls.push({ verb: 'stopNow', given: undefined })
  },
  ...rest,
})

export interface FakeContext extends CliContext {
  readonly clock: VirtualClock
  readonly stdout: FakeOutput
  readonly stderr: FakeOutput
  readonly send: (signal: StopSignal) => void
  readonly signalListeners: () => number
  /** Runs a command to its end while virtual time passes. */
  readonly end: (work: Promise<number>) => Promise<number>
}

export const fakeContext = (
  given: {
    readonly terminal?: boolean
    readonly columns?: number
    readonly env?: Readonly<Record<string, string>>
    readonly files?: Readonly<Record<string, string>>
    readonly stdin?: string
    readonly backend?: Partial<Backend>
    readonly client?: JobsClient
    readonly runtime?: LocalRuntime
    readonly service?: Service
    readonly provisioning?: Provisioning
  } = {},
): FakeContext => {
  const clock = createVirtualClock()
  const signals = fakeSignals()
  const absent = (what: string) => async () => {
    throw new AnyFault('UNREACHABLE', `there is no ${what}`)
  }
  return {
    clock,
    random: createSeededRandom(1),
    host: {
      env: given.env ?? {},
      cwd: '/home/ada/place',
      platform: 'linux',
      home: '/home/ada',
      temporary: '/tmp',
      uid: 1000,
    },
    stdin: { isTerminal: false, readAll: async () => Buffer.from(given.stdin ?? '') },
    stdout: fakeOutput(given.terminal, given.columns),
    stderr: fakeOutput(given.terminal, given.columns),
    signals: signals.signals,
    send: signals.send,
    signalListeners: () => signals.listeners,
    files: {
      readText: async (path) => given.files?.[path],
      readToken: async () => 'token-of-this-machine',
    },
    backend: {
      connect: given.client ? async () => given.client as JobsClient : absent('server'),
      open: given.runtime ? async () => given.runtime as LocalRuntime : absent('runtime'),
      serve: given.service ? async () => given.service as Service : absent('service'),
      work: given.service ? async () => given.service as Service : absent('service'),
      provision: given.provisioning ? async () => given.provisioning as Provisioning : absent('cloud'),
      ...given.backend,
    },
    end: async (work) => {
      let isDone = false
      const done = work.finally(() => {
        isDone = true
      })
      done.catch(() => {})
      for (let rounds = 0; !isDone && rounds < 1_000_000; rounds++) {
        await settle()
        if (!isDone) clock.step()
      }
      return done
    },
  }
}
