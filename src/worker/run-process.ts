import { unreachable } from '../kernel/assert.ts'
import type { AttemptLog } from '../log/attempt-log.ts'
import type { StreamName } from '../log/event.ts'
import type { Child, Command, Exec, Exit, NotStarted } from './exec.ts'
import type { LazyLog } from './lazy-log.ts'
import type { Ended, Told, Work } from './work.ts'

// A program as work: its pipes go into the log, its end is told exactly.
//
// P1  PROCESS_START is in the log before any output; the child does not wait for it.
// P2  A pipe is read only while the log has room: the process is made to wait, nothing is dropped.
// P3  `exited` may come before the last output, and `closed` waits for everybody who holds a pipe: how long is the attempt's
//     decision. What is cut is marked.

export interface ProcessDeps {
  readonly exec: Exec
  readonly workerId: string
}

export const createProcessWork = (
  { exec, workerId }: ProcessDeps,
  lazyLog: LazyLog,
  job: { readonly id: string; readonly attempt: number },
  command: Command,
): Work => {
  let child: Child | undefined
  let told: Told
  let exit: Exit | NotStarted | undefined
  let closed = false
  /** Streams that wait for the log. */
  const waiting = new Set<StreamName>()

  const openLog = (started?: Child): AttemptLog =>
    lazyLog.open(() => ({
      attempt: job.attempt,
      workerId,
      argv: command.argv,
      ...(started === undefined ? {} : { pid: started.pid }),
      ...(started?.startTime === undefined ? {} : { pidStart: started.startTime }),
    }))

  const hasStarted = (started: Child): void => {
    child = started
    const log = openLog(started)
    for (const stream of ['stdout', 'stderr'] as const) carry(started, log, stream)
    void started.exited.then((how) => {
      exit = how
      told.exited(waiting.size === 0)
    })
    void started.closed.then(() => {
      if (closed) return
      closed = true
      told.closed()
    })
    told.started()
  }

  const carry = (from: Child, log: AttemptLog, stream: StreamName): void =>
    from.onOutput(stream, (bytes) => {
      if (closed) return
      try {
        const room = log.output(stream, bytes)
        if (room === undefined || waiting.has(stream)) return
        hold(from, stream)
        // A log that cannot be written any more says so itself; there is nothing to resume then.
        room.then(
          () => letFlow(from, stream),
          () => {},
        )
      } catch (error) {
        told.broke(error)
      }
    })

  const hold = (from: Child, stream: StreamName): void => {
    from.pause(stream)
    waiting.add(stream)
    if (exit !== undefined) told.flowing(false)
  }

  const letFlow = (from: Child, stream: StreamName): void => {
    waiting.delete(stream)
    if (closed) return
    from.resume(stream)
    if (exit !== undefined && waiting.size === 0) told.flowing(true)
  }

  const signal = (name: 'SIGTERM' | 'SIGKILL', why: string | undefined): void => {
    child?.kill(name)
    if (why !== undefined) note(lazyLog.log(), `${name} was sent: ${why}`)
  }

  return {
    begin: (owner) => {
      told = owner
      exec
        .spawn(command)
        .then((started) => {
          if ('pid' in started) return hasStarted(started)
          exit = started
          closed = true
          openLog()
          told.closed()
        })
        .catch((error: unknown) => {
          told.broke(error)
          told.closed()
        })
    },
    terminate: (why) => signal('SIGTERM', why),
    kill: (why) => signal('SIGKILL', why),
    abandon: () => {
      note(lazyLog.log(), 'the process did not end after SIGKILL, and goes on without us')
      told.closed()
    },
    close: ({ forced, silent }) => {
      const wasOpen = child !== undefined && !closed
      closed = true
      if (child === undefined) return undefined
      if (wasOpen || forced) child.kill('SIGKILL')
      if (wasOpen) {
        for (const { stream, bytes } of child.cut()) if (!silent) lazyLog.log()?.cut(stream, bytes, cutReason)
      }
      return forced ? exec.killLeftovers?.(job.id, job.attempt) : undefined
    },
    ended: () => endOf(exit ?? { error: 'the process did not end after SIGKILL' }),
  }
}

const cutReason = 'something that the process started went on writing after it had ended'

/** Nobody waits for a remark, and the log says by itself when it cannot be written. */
const note = (log: AttemptLog | undefined, text: string): void => {
  log?.error(text).catch(() => {})
}

const endOf = (exit: Exit | NotStarted): Ended => {
  if ('error' in exit) {
    return { outcome: { kind: 'failed', error: exit.error }, end: { error: exit.error }, byItself: true }
  }
  if ('signal' in exit) {
    const error = `ended by signal ${exit.signal}`
    return { outcome: { kind: 'failed', error }, end: { signal: exit.signal, error }, byItself: false }
  }
  if ('code' in exit) {
    const error = `exited with code ${exit.code}`
    return exit.code === 0
      ? { outcome: { kind: 'done', result: { exitCode: 0 } }, end: { exitCode: 0 }, byItself: false }
      : { outcome: { kind: 'failed', error }, end: { exitCode: exit.code, error }, byItself: false }
  }
  return unreachable(exit)
}
