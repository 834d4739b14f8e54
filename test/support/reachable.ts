import { type AnyActorLogic, initialTransition, transition } from 'xstate'

interface Snapshot {
  readonly value: unknown
  readonly context: unknown
}

/** Every state value that some order of the events leads to. `events` should hold one of each kind that makes a difference. */
export const reachableStates = (
  logic: AnyActorLogic,
  input: unknown,
  events: readonly { readonly type: string }[],
): Set<unknown> => {
  const [first] = initialTransition(logic, input as never)
  const open: Snapshot[] = [first as Snapshot]
  const seen = new Set<string>()
  const values = new Set<unknown>()
  for (let visited = 0; open.length > 0 && visited < 10_000; visited++) {
    const snapshot = open.pop() as Snapshot
    const key = JSON.stringify([snapshot.value, snapshot.context])
    if (seen.has(key)) continue
    seen.add(key)
    values.add(snapshot.value)
    for (const event of events) open.push(transition(logic, snapshot as never, event as never)[0] as Snapshot)
  }
  return values
}
