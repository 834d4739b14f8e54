import { type Priority, priorities } from './port.ts'

/** How often the lowest class goes first, so that a flood of high ones cannot starve it. */
const everyTurns = 8
const lowestFirst: readonly Priority[] = [...priorities].reverse()

/** Whose turn it is in one queue: strictly by priority, but every 8th receive starts from the lowest class. */
export interface Turns {
  /** The order of the classes for the receive that comes next. */
  order(): readonly Priority[]
  /** A receive has had its turn. */
  pass(): void
}

export const createTurns = (): Turns => {
  let turn = 1
  return {
    order: () => (turn === everyTurns ? lowestFirst : priorities),
    pass: () => {
      turn = turn === everyTurns ? 1 : turn + 1
    },
  }
}
