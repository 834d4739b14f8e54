import { unreachable } from '../kernel/assert.ts'
import type { Action, Row, Value, Verdict, Write } from '../tables/port.ts'

/** A write on its way, and whoever waits for its verdict. */
export interface Operation {
  readonly write: Write
  readonly bytes: number
  /** Set once the verdict was given. A flush that is tried again leaves such operations out. */
  settled: boolean
  answer(verdict: Verdict): void
  fail(error: unknown): void
}

export const createOperation = (write: Write, answer: (verdict: Verdict) => void, fail: (error: unknown) => void) => {
  const operation: Operation = {
    write,
    bytes: sizeOf(write),
    settled: false,
    answer: (verdict) => {
      if (operation.settled) return
      operation.settled = true
      answer(verdict)
    },
    fail: (error) => {
      if (operation.settled) return
      operation.settled = true
      fail(error)
    },
  }
  return operation
}

/** One operation in the place of two: both get its verdict. */
export const joinOperations = (write: Write, earlier: Operation, later: Operation): Operation =>
  createOperation(
    write,
    (verdict) => {
      earlier.answer(verdict)
      later.answer(verdict)
    },
    (error) => {
      earlier.fail(error)
      later.fail(error)
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
