import type { Clock } from '../kernel/clock.ts'
import type { Random } from '../kernel/random.ts'
import type { Queue } from '../queues/port.ts'
import type { TableSchema, Tables } from '../tables/port.ts'
import type { Emit } from '../telemetry/events.ts'

/** A choice of adapters: what stands behind each port. */
export interface Profile {
  /** The persistence actor over the adapter: the only way to write. */
  readonly tables: Tables
  readonly queue: Queue
  /** Deletes some of what has expired, where the backend does not do so itself; how many rows it deleted. */
  readonly purge?: () => Promise<number>
  /** The least time between two flushes of output for somebody who watches; more than nothing where each flush costs. */
  readonly watchedFloorMs: number
  /** Stands before the ids of this process's workers. */
  readonly workerPrefix: string
  /** The prefix of workers that are known to be dead, because the process they lived in is. */
  readonly deadWorkers?: string
  /** Ends what is under way, then lets go of everything. */
  close(): Promise<void>
}

export interface ProfileDeps {
  readonly clock: Clock
  readonly random: Random
  readonly emit: Emit
  /** The storage can no longer be trusted: the process must end. */
  readonly fatal: (error: unknown) => void
  readonly schemas: readonly TableSchema[]
}

/** How many expired rows one purge deletes at the most, so that it never holds up the work. */
export const purgeMax = 500

/** Tells the workers of one process from those of another. */
export const freshPrefix = (random: Random): string => `${Buffer.from(random.bytes(9)).toString('hex')}/`
