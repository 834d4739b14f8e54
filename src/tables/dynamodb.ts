// Tables in DynamoDB, for any number of processes. Conditions are decided by the service; retries and deadlines are ours.

import { assert } from '../kernel/assert.ts'
import { assertWellFormed, createCatalogue } from './condition.ts'
import { type CallDeps, createCall } from './dynamodb/call.ts'
import { createCommit } from './dynamodb/commit.ts'
import { connect, type DynamodbOptions, withDefaults } from './dynamodb/connect.ts'
import { dynamodbLimits, vendorLimits } from './dynamodb/limits.ts'
import { createReads } from './dynamodb/read.ts'
import type { Wire } from './dynamodb/wire.ts'
import { TableClosed } from './faults.ts'
import type { Tables } from './port.ts'

export type { DynamodbCall } from './dynamodb/call.ts'
export type { DynamodbOptions } from './dynamodb/connect.ts'
export { provisionTables } from './dynamodb/provision.ts'

export const openDynamodb = async (deps: CallDeps, options: DynamodbOptions): Promise<Tables> => {
  const settings = withDefaults(options)
  assert(settings.deadlineMs < vendorLimits.transaction.tokenMs, 'a transaction would outlive its token')
  const schemaOf = createCatalogue(settings.schemas)
  const client = await connect(settings)
  const nameOf = (table: string) => `${settings.tablePrefix}${table}`
  const wire: Wire = { client, call: createCall(deps, settings), random: deps.random, schemaOf, nameOf }
  const commit = createCommit(wire)
  const reads = createReads(wire)
  const underWay = new Set<Promise<unknown>>()
  let closed = false

  /** Runs a verb within the deadline; close waits for it. */
  const run = async <Output>(verb: (until: number) => Promise<Output>): Promise<Output> => {
    if (closed) throw new TableClosed('the tables were closed')
    const running = verb(deps.clock.monotonic() + settings.deadlineMs)
    underWay.add(running)
    try {
      return await running
    } finally {
      underWay.delete(running)
    }
  }

  return {
    limits: dynamodbLimits,
    get: (table, key) => run((until) => reads.get(until, table, key)),
    getMany: (table, keys) => run((until) => reads.getMany(until, table, keys)),
    query: (table, range) => run((until) => reads.query(until, table, range)),
    lookup: (table, index, range) => run((until) => reads.lookup(until, table, index, range)),
    commit: (writes) =>
      run(async (until) => {
        for (const write of writes) assertWellFormed(schemaOf, write)
        return commit(writes, until)
      }),
    close: async () => {
      closed = true
      await Promise.allSettled(underWay)
      client.destroy()
    },
  }
}
