import { createRemoteService } from '../../client/connect.ts'
import type { Options } from '../../config/options.ts'
import type { Address } from '../../rpc/server.ts'
import { createRemoteWorker, createRuntime } from '../../runtime.ts'
import type { Emit, TelemetryEvent } from '../../telemetry/events.ts'
import type { Service, Target } from '../context.ts'
import { type BackendDeps, environmentOf, localToken, prepareDirectory, socketOf } from './ground.ts'
import { loadHandlers } from './load-handlers.ts'

/** Server and store until stopped, with workers or without. */
export const serve = async (
  deps: BackendDeps,
  options: Options,
  how: { readonly workers: boolean; readonly handlers: readonly string[] },
): Promise<Service> => {
  const { clock, random, host } = deps
  const handlers = await loadHandlers(host.cwd, how.handlers)
  const { ended, fatal } = createEnd()
  const log = createLog(deps)
  await prepareDirectory(options)
  const runtime = await createRuntime(options, {
    clock,
    random,
    fatal,
    handlers,
    emit: log.emit,
    environment: environmentOf(host),
    work: how.workers ? 'all' : 'none',
  })
  try {
    const { host: name, port } = options.server
    const listen = [{ host: name, port }, ...(await socketOf(deps, options))]
    const server = await runtime.serve({ listen, localToken: await localToken(deps, options) })
    void log.open()
    return {
      addresses: server.addresses().map(spelled),
      stop: runtime.stop,
      stopNow: runtime.stopNow,
      ended,
    }
  } catch (error) {
    await Promise.all([runtime.stopNow(), log.open()])
    throw error
  }
}

/** Workers alone, for a server elsewhere. */
export const work = async (
  deps: BackendDeps,
  options: Options,
  { address, token }: Target,
  how: { readonly handlers: readonly string[] },
): Promise<Service> => {
  const { clock, random, host } = deps
  const handlers = await loadHandlers(host.cwd, how.handlers)
  const log = createLog(deps)
  const service = createRemoteService({ address, token, clock, random })
  const worker = createRemoteWorker(options, service, {
    clock,
    random,
    handlers,
    emit: log.emit,
    environment: environmentOf(host),
  })
  void log.open()
  const closed = (stopping: Promise<void>) => stopping.finally(() => service.close())
  return {
    addresses: [],
    stop: () => closed(worker.stop()),
    stopNow: () => closed(worker.stopNow()),
    ended: createEnd().ended,
  }
}

/** Rejects when the storage can no longer be trusted; otherwise it is pending for as long as the service lives. */
const createEnd = (): { readonly ended: Promise<void>; readonly fatal: (error: unknown) => void } => {
  let fatal: (error: unknown) => void = () => {}
  const ended = new Promise<void>((_, reject) => {
    fatal = reject
  })
  ended.catch(() => {})
  return { ended, fatal }
}

/** Events for those who run it, as lines of JSON on standard error. What writes them is loaded when everything else is ready. */
const createLog = ({ host }: BackendDeps): { readonly emit: Emit; readonly open: () => Promise<void> } => {
  let log: Emit | undefined
  const early: TelemetryEvent[] = []
  return {
    emit: (event) => {
      if (log === undefined) early.push(event)
      else log(event)
    },
    open: async () => {
      const { createLogger, logEvents } = await import('../../telemetry/logger.ts')
      log = logEvents(createLogger({ level: host.env['MILLRACE_LOG_LEVEL'] || 'warn' }, process.stderr))
      for (const event of early.splice(0)) log(event)
    },
  }
}

const spelled = (address: Address): string =>
  'path' in address ? `unix:${address.path}` : `http://${bracketed(address.host)}:${address.port}`

const bracketed = (host: string): string => (host.includes(':') ? `[${host}]` : host)
