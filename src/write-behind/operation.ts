import { unreachable } from '../kernel/assert.ts'
import type { Action, Row, Value, Verdict, Write } from '../tables/port.ts'

/** The writes that came together, and whoever waits for all their verdicts. */
export interface Call {
  readonly verdicts: Verdict[]
  left: number
  readonly resolve: (verdicts: readonly Verdict[]) => void
  readonly reject: (error: unknown) => void
}

/** A write on its way. Plain fields and no closures: one is made for every write. */
export interface Operation {
  readonly write: Write
  readonly bytes: number
  /** Set once the verdict was given. A flush that is tried again leaves such operations out. */
  settled: boolean
  readonly call: Call
  /** Which of the call's writes it is. */
  readonly place: number
  /** The two that it stands for, if it was made of two: both get its verdict. */
  readonly joined: readonly [Operation, Operation] | undefined
}

export const createOperation = (write: Write, call: Call, place: number): Operation => ({
  write,
  bytes: sizeOf(write),
  settled: false,
  call,
  place,
  joined: undefined,
})

/** One operation in the place of two. */
export const joinOperations = (write: Write, earlier: Operation, later: Operation): Operation => ({
  ...createOperation(write, later.call, later.place),
  joined: [earlier, later],
})

/** Gives the verdict, the first time. */
export const answer = (operation: Operation, verdict: Verdict): void => {
  if (operation.settled) return
  operation.settled = true
  if (operation.joined) {
    for (const one of operation.joined) answer(one, verdict)
    return
  }
  const { call } = operation
  call.verdicts[operation.place] = verdict
  call.left -= 1
  if (call.left === 0) call.resolve(call.verdicts)
}

export const fail = (operation: Operation, error: unknown): void => {
  if (operation.settled) return
  operation.settled = true
  if (operation.joined) for (const one of operation.joined) fail(one, error)
  else operation.call.reject(error)
}

/** About what the write takes in memory; for bounds, not for bills. */
const sizeOf = ({ actions }: Write): number => {
  let bytes = 0
  for (const action of actions) bytes += sizeOfAction(action)
  return bytes
}

const perAction = 64

const sizeOfAction = (action: Action): number => {
  switch (action.kind) {
    case 'put':
      return perAction + sizeOfRow(action.row)
    case 'update':
      return perAction + (action.set ? sizeOfRow(action.set) : 0)
    case 'delete':
    case 'check':
      return perAction
    default:
      return unreachable(action)
  }
}

const sizeOfRow = (row: Row): number => {
  let bytes = 0
  for (const name in row) bytes += name.length + sizeOfValue(row[name] as Value)
  return bytes
}

const sizeOfValue = (value: Value): number =>
  typeof value === 'string' || value instanceof Uint8Array ? value.length : 8
