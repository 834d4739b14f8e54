// The holder of a directory: one record, replaced inside a write transaction, whose LMDB version is the holder's nonce.
//
// H1  Every commit stands or falls with the nonce: a process that was taken for dead writes nothing when it comes back.
// H2  A holder on this boot and in this namespace is dead only if its process is gone or another one has its id.
// H3  Any other holder is only presumed dead, after its heartbeat has not moved for `presumedDeadMs` on our own clock.

import { type Clock, sleep } from '../../kernel/clock.ts'
import type { Random } from '../../kernel/random.ts'
import { DirectoryHeld } from '../directory-faults.ts'
import type { Environment } from './environment.ts'
import type { HostFacts } from './host.ts'

export const heartbeatMs = 10_000
const presumedDeadMs = 30_000
const lookMs = 1_000

export interface HolderRecord {
  readonly host: string
  readonly bootId: string
  readonly pidNamespace: string
  readonly pid: number
  readonly startTime: string
  readonly nonce: string
}

/** How the holder before us ended, if it did not let go by itself. */
export interface PreviousHolder {
  readonly nonce: string
  readonly died: 'proved' | 'presumed'
}

const holderKey = 'holder'
const heartbeatKey = 'heartbeat'
const noKey = 'none'

export const createHolderRecord = (host: HostFacts, random: Random): HolderRecord => ({
  host: host.hostname,
  bootId: host.bootId,
  pidNamespace: host.pidNamespace,
  pid: host.pid,
  startTime: host.startTime,
  nonce: Buffer.from(random.bytes(6)).toString('hex'),
})

/** LMDB versions are numbers; 48 bits fit exactly. */
const versionOf = (nonce: string): number => Number.parseInt(nonce, 16)

export const readHolder = (environment: Environment): HolderRecord | undefined => {
  const bytes = environment.holder.getBinary(holderKey)
  return bytes && (JSON.parse(bytes.toString()) as HolderRecord)
}

export const readHeartbeat = (environment: Environment): string =>
  environment.meta.getBinary(heartbeatKey)?.toString() ?? ''

export type Health = 'alive' | 'dead' | 'unknown'

/** What can be said of a holder without waiting. */
export const judge = (record: HolderRecord, host: HostFacts): Health => {
  const sameHost = record.host === host.hostname
  // No process survives a start of the machine.
  if (sameHost && record.bootId !== host.bootId) return 'dead'
  const comparable = sameHost && record.pidNamespace === host.pidNamespace
  if (!comparable) return 'unknown'
  return host.isAlive(record.pid, record.startTime) ? 'alive' : 'dead'
}

/** What one look into the directory showed. */
export interface Sighting {
  readonly holder: HolderRecord | undefined
  readonly heartbeat: string
}

/** Resolves when the directory may be taken, with what is known of its last holder. Throws DirectoryHeld if it is held. */
export const awaitFree = async (
  deps: { readonly clock: Clock; readonly host: HostFacts; readonly look: () => Promise<Sighting> },
  path: string,
): Promise<{ readonly holder: HolderRecord | undefined; readonly previous: PreviousHolder | undefined }> => {
  const { holder, heartbeat } = await deps.look()
  if (!holder) return { holder, previous: undefined }
  const health = judge(holder, deps.host)
  if (health === 'alive') throw new DirectoryHeld(path, holder)
  if (health === 'dead') return { holder, previous: { nonce: holder.nonce, died: 'proved' } }
  const since = deps.clock.monotonic()
  while (deps.clock.monotonic() - since < presumedDeadMs) {
    await sleep(deps.clock, lookMs)
    const now = await deps.look()
    if (!now.holder) return { holder: undefined, previous: undefined }
    if (now.holder.nonce !== holder.nonce || now.heartbeat !== heartbeat) throw new DirectoryHeld(path, now.holder)
  }
  return { holder, previous: { nonce: holder.nonce, died: 'presumed' } }
}

/** Replaces the record if it is still the one that was judged; false if somebody was quicker. */
export const takeHolder = (environment: Environment, judged: HolderRecord | undefined, own: HolderRecord): boolean =>
  environment.root.transactionSync(() => {
    if (readHolder(environment)?.nonce !== judged?.nonce) return false
    environment.holder.putSync(holderKey, Buffer.from(JSON.stringify(own)), versionOf(own.nonce))
    environment.meta.putSync(heartbeatKey, Buffer.from(`${own.nonce}:0`))
    return true
  })

/** The puts take effect if and only if the nonce is still the holder's when the transaction runs; false if it is not. */
export const whileHolding = (environment: Environment, nonce: string, puts: () => void): Promise<boolean> => {
  const stood = environment.holder.ifVersion(holderKey, versionOf(nonce), puts)
  // The library starts its thread when this turn ends, which may be long; one instruction more, and it starts at once. There
  // is never such a key. What fails this fails the puts too, and they tell of it.
  environment.meta.remove(noKey).catch(() => {})
  return stood
}

export const putHeartbeat = (environment: Environment, nonce: string, count: number): void => {
  void environment.meta.put(heartbeatKey, Buffer.from(`${nonce}:${count}`))
}

export const letGo = (environment: Environment): void => {
  void environment.holder.remove(holderKey)
}

/** A copy belongs to nobody. */
export const disown = (environment: Environment): void => {
  environment.holder.removeSync(holderKey)
}
