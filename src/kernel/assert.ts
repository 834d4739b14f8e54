/** Something happened that cannot happen. It is a bug here, not a failure outside: nothing may catch it and go on. */
export class Impossible extends Error {
  override readonly name = 'Impossible'
}

/** Stops on what cannot be. Expected failures are faults; see fault.ts. */
export function assert(claim: unknown, otherwise: string): asserts claim {
  if (!claim) throw new Impossible(otherwise)
}

/** The end of a switch over a closed set: the compiler proves that it is never reached. */
export const unreachable = (value: never): never => {
  throw new Impossible(`not handled: ${JSON.stringify(value)}`)
}
