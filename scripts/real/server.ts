import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, mkdirSync, mkdtempSync, openSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { cacheFolder } from './folders.ts'

/** How to run one kind of server. A new kind is one more value of this, one profile in the pom, one line in test-real.ts. */
export interface ServerKind {
  /** Also the profile of the pom. */
  readonly name: string
  /** The environment variable that tells the tests where the server is. */
  readonly variable: string
  /** What the tests are told, for the port the server was given. */
  address(port: number): string
  /** Java's arguments. May write into `place.scratch` first, or run a program that prepares it. */
  javaArguments(place: Place): Promise<readonly string[]>
  /** Resolves when the server answers a real request, rejects or resolves to false while it does not. */
  answers(address: string, signal: AbortSignal): Promise<boolean>
}

export interface Place {
  readonly java: string
  /** The folder with the server's jars. */
  readonly jars: string
  /** A free port on loopback. */
  readonly port: number
  /** An empty folder that goes when the server does. */
  readonly scratch: string
}

export interface Server {
  readonly address: string
  readonly pid: number
  readonly logPath: string
  /** Ends the process and resolves when it has gone. May be called twice. */
  stop(): Promise<void>
}

const asksMax = 240
const betweenAsksMs = 250
const askMsMax = 2_000
const graceMs = 5_000

/**
 * Starts one server and resolves when it answers. Rejects, with nothing left running, when it ends, stays silent or the
 * signal is aborted.
 */
export const startServer = async (
  kind: ServerKind,
  { java, jars }: Pick<Place, 'java' | 'jars'>,
  signal: AbortSignal,
): Promise<Server> => {
  const scratch = mkdtempSync(join(tmpdir(), `millrace-${kind.name}-`))
  const port = await freePort()
  const address = kind.address(port)
  const logs = join(cacheFolder, 'logs')
  mkdirSync(logs, { recursive: true })
  const logPath = join(logs, `${kind.name}.log`)
  const child = spawnLogged(java, await kind.javaArguments({ java, jars, port, scratch }), scratch, logPath)
  const stop = async () => {
    await end(child)
    rmSync(scratch, { recursive: true, force: true })
  }
  try {
    await once(child, 'spawn')
    await untilAnswers(kind, address, child, signal)
  } catch (cause) {
    await stop()
    throw new Error(`${kind.name} did not start; its log is ${logPath}`, { cause })
  }
  return { address, pid: child.pid ?? 0, logPath, stop }
}

const spawnLogged = (java: string, javaArguments: readonly string[], cwd: string, logPath: string): ChildProcess => {
  const log = openSync(logPath, 'w')
  // A group of its own: Ctrl-C reaches this process alone, which then stops the servers after the tests that use them.
  const child = spawn(java, ['-Xmx256m', ...javaArguments], { cwd, detached: true, stdio: ['ignore', log, log] })
  closeSync(log)
  // The last resort, should this process end by a bug: nothing else would ever stop a server in a group of its own.
  const kill = () => child.kill('SIGKILL')
  process.once('exit', kill)
  child.once('exit', () => process.off('exit', kill))
  return child
}

const untilAnswers = async (
  kind: ServerKind,
  address: string,
  child: ChildProcess,
  signal: AbortSignal,
): Promise<void> => {
  let last: unknown
  for (let asked = 0; asked < asksMax; asked++) {
    if (signal.aborted) throw new Error('interrupted')
    if (hasEnded(child)) throw new Error(`${kind.name} ended with ${child.exitCode ?? child.signalCode}`)
    try {
      if (await kind.answers(address, AbortSignal.timeout(askMsMax))) return
    } catch (error) {
      last = error
    }
    await pause(betweenAsksMs)
  }
  throw new Error(`${kind.name} was asked ${asksMax} times and did not answer`, { cause: last })
}

const hasEnded = (child: ChildProcess): boolean => child.exitCode !== null || child.signalCode !== null

const end = async (child: ChildProcess): Promise<void> => {
  if (child.pid === undefined || hasEnded(child)) return
  const gone = once(child, 'exit')
  child.kill('SIGTERM')
  const killing = setTimeout(() => child.kill('SIGKILL'), graceMs)
  await gone
  clearTimeout(killing)
}

const freePort = async (): Promise<number> => {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  server.close()
  await once(server, 'close')
  if (address === null || typeof address === 'string') throw new Error('a listening socket has no port')
  return address.port
}
