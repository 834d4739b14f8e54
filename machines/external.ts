import { type AnyStateMachine, fromPromise, type NonReducibleUnknown } from 'xstate'

const placeholders = new WeakSet<object>()

/** Names an actor that `src` must provide. */
export const external = <Output, Input extends NonReducibleUnknown>(name: string) => {
  const logic = fromPromise<Output, Input>(() => Promise.reject(new Error(`actor '${name}' was not provided`)))
  placeholders.add(logic)
  return logic
}

/** A machine with `onError` would take a missing actor for one that failed: look before starting. */
export const missingActors = (machine: AnyStateMachine): readonly string[] =>
  Object.entries(machine.implementations.actors)
    .filter(([, logic]) => typeof logic === 'object' && logic !== null && placeholders.has(logic))
    .map(([name]) => name)
