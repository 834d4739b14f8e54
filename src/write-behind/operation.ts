import { unreachable } from '../kernel/assert.ts'
import type { Action, Row, Value, Verdict, Write } from '../tables/port.ts'

/** A write on its way, and whoever waits for its verdict. Plain fields and no closures: one is made for every write. */
export interface Operation {
  readonly write: Write
  readonly bytes: number
  /** Set once the verdict was given. A flush that is tried again leaves such operations out. */
  settled: boolean
  readonly resolve: (verdict: Verdict) => void
  readonly reject: (error: unknown) => void
}

export const createOperation = (
  write: Write,
  resolve: (verdict: Verdict) => void,
  reject: (error: unknown) => void,
): Operation => ({ write, bytes: sizeOf(write), settled: false, resolve, reject })

/** Gives the verdict, the first time. */
export const answer = (operation: Operation, verdict: Verdict): void => {
  if (operation.settled) return
  operation.settled = true
  operation.resolve(verdict)
}

export const fail = (operation: Operation, error: unknown): void => {
  if (operation.settled) return
  operation.settled = true
  operation.reject(error)
}

/** One operation in the place of two: both get its verdict. */
export const joinOperations = (write: Write, earlier: Operation, later: Operation): Operation =>
  createOperation(
    write,
    (verdict) => {
      answer(earlier, verdict)
      answer(later, verdict)
    },
    (error) => {
      fail(earlier, error)
      fail(later, error)
    },
  )

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
