// What an attempt decides by, and when which of it is due. Times are monotonic; undefined means that it is not due at all.

/** Why work is stopped. */
export type StopReason = 'cancelled' | 'timeLimit' | 'leaseLost' | 'claimLost' | 'drained' | 'halted'

export interface AttemptLimits {
  readonly leaseMs: number
  readonly heartbeatMs: number
  /** From SIGTERM to SIGKILL. */
  readonly graceMs: number
  /** How long output is taken that comes after the exit. */
  readonly outputGraceMs: number
  readonly timeoutMs: number | undefined
}

export interface AttemptContext {
  readonly limits: AttemptLimits
  readonly reason: StopReason | undefined
  /** The number of the heartbeat that is under way, or was last. */
  readonly beat: number
  /** Heartbeats in a row that were not acknowledged. */
  readonly missed: number
  /** When the first heartbeat was sent that has no answer yet. */
  readonly askedAt: number | undefined
  readonly beatAt: number | undefined
  readonly leaseEndsAt: number
  readonly limitAt: number | undefined
  /** When SIGKILL follows. */
  readonly killAt: number | undefined
  /** When what holds the pipes open is cut off. */
  readonly cutAt: number | undefined
  /** When waiting is over: for a process that does not die, or for a store that does not answer a worker that stops. */
  readonly giveUpAt: number | undefined
}

/** The part of a lease that is kept back, so that a child is dead before the lease ends and not a moment after. */
const marginOf = (leaseMs: number): number => leaseMs / 60
const beatRetryMs = 250

/** Whether the job may be somebody else's: then nothing is settled. */
export const isLost = (reason: StopReason | undefined): boolean => reason === 'leaseLost' || reason === 'claimLost'

/** When a child must be dead, by the lease. */
export const killByLease = ({ limits, leaseEndsAt }: AttemptContext): number => leaseEndsAt - marginOf(limits.leaseMs)
/** When SIGTERM is sent because the lease is about to end; not before a heartbeat has had its chance to be answered. */
export const fadesAt = (context: AttemptContext): number => {
  const { limits, missed, askedAt, beatAt } = context
  const usual = killByLease(context) - Math.min(limits.graceMs, limits.leaseMs / 6)
  const asked = askedAt ?? beatAt
  if (missed > 0 || asked === undefined) return usual
  return Math.min(killByLease(context), Math.max(usual, asked + marginOf(limits.leaseMs)))
}

/** When a heartbeat is sent again that was not acknowledged. */
export const beatAgainAt = (
  { missed, limits, beatAt }: AttemptContext,
  { at, chance }: { readonly at: number; readonly chance: number },
): number | undefined => {
  if (beatAt === undefined) return undefined
  // Once is bad luck: at once again. Then ever more slowly, up to the usual pace.
  const ceilingMs = missed === 0 ? 0 : Math.min(limits.heartbeatMs, beatRetryMs * 2 ** Math.min(missed - 1, 20))
  return at + ceilingMs * (0.5 + chance / 2)
}

/** When the driver must send the next `tick`. */
export const wakeAt = (context: AttemptContext, value: string): number => {
  const { beatAt, limitAt, killAt, cutAt, giveUpAt, reason } = context
  const leaseAt =
    isLost(reason) || value === 'settling' ? undefined : value === 'running' ? fadesAt(context) : killByLease(context)
  return Math.min(...[beatAt, limitAt, killAt, cutAt, giveUpAt, leaseAt].map((at) => at ?? Number.POSITIVE_INFINITY))
}
