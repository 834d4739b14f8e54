import type { ConsumedCapacity, DynamoDB } from '@aws-sdk/client-dynamodb'
import type { Random } from '../../kernel/random.ts'
import { TableFault } from '../faults.ts'
import type { Action, Row, TableSchema, Verdict } from '../port.ts'
import type { Call } from './call.ts'

/** What every part of the adapter needs to speak with the service. */
export interface Wire {
  readonly client: DynamoDB
  readonly call: Call
  readonly random: Random
  readonly schemaOf: (table: string) => TableSchema
  /** Our name of a table → the service's. */
  readonly nameOf: (table: string) => string
}

/** Asks for the bill with the answer. */
export const counted = { ReturnConsumedCapacity: 'TOTAL' } as const

/** The capacity units that a call used, by the service's own account. */
export const unitsOf = (capacity: ConsumedCapacity | readonly ConsumedCapacity[] | undefined): number =>
  [capacity ?? []].flat().reduce((sum, { CapacityUnits = 0 }) => sum + CapacityUnits, 0)

export const done = (row?: Row): Verdict => (row ? { kind: 'done', row } : { kind: 'done' })

/** The row after a put needs no reading. */
export const rowAfter = (action: Action): Row | undefined => (action.kind === 'put' ? action.row : undefined)

/** The verdict of a write that failed. Anything but a fault is a bug and goes on its way. */
export const failed = (error: unknown): Verdict & { kind: 'failed' } => {
  if (!(error instanceof TableFault)) throw error
  return { kind: 'failed', fault: error }
}
