import { type ActorOptions, type AnyStateMachine, createActor } from 'xstate'
import { missingActors } from '../../machines/external.ts'
import { assert } from './assert.ts'
import type { Clock } from './clock.ts'

/** Creates an actor on our clock. Refuses a machine that still has a placeholder in it. The caller starts it. */
export const createRoot = <Machine extends AnyStateMachine>(
  machine: Machine,
  options: ActorOptions<Machine> & { readonly clock: Clock },
) => {
  const missing = missingActors(machine)
  assert(missing.length === 0, `${machine.id}: not provided: ${missing.join(', ')}`)
  return createActor(machine, options)
}
