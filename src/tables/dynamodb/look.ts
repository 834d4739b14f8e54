import { TableRefused } from '../faults.ts'
import { type CallDeps, createCall } from './call.ts'
import { connect, type DynamodbOptions, withDefaults } from './connect.ts'
import { shapeOf, tableInput, unless } from './provision.ts'

/** What is there of a table: nothing, all of it, or all but the expiry of its rows. */
export type TableFound = 'absent' | 'present' | 'incomplete'

/** Looks what provisioning would find, in the order of the schemas. Changes nothing. */
export const lookAtTables = async (deps: CallDeps, options: DynamodbOptions): Promise<readonly TableFound[]> => {
  const settings = withDefaults(options)
  const client = await connect(settings)
  const call = createCall(deps, settings)
  const until = deps.clock.monotonic() + settings.deadlineMs
  const ask = <Output>(operation: string, send: (signal: AbortSignal) => Promise<Output>): Promise<Output> =>
    call({ operation, twice: 'read', until }, async (signal) => ({ output: await send(signal), units: 0 }))
  try {
    const found: TableFound[] = []
    for (const schema of settings.schemas) {
      const input = tableInput(schema, `${settings.tablePrefix}${schema.name}`)
      const { TableName } = input
      const described = await ask('DescribeTable', (abortSignal) =>
        client.describeTable({ TableName }, { abortSignal }).catch(unless('ResourceNotFoundException')),
      )
      const table = described?.Table
      if (table === undefined) {
        found.push('absent')
        continue
      }
      if (shapeOf(table) !== shapeOf(input)) throw new TableRefused(`${TableName} exists with other keys or indexes`)
      const { TimeToLiveDescription: expiry } = await ask('DescribeTimeToLive', (abortSignal) =>
        client.describeTimeToLive({ TableName }, { abortSignal }),
      )
      found.push(schema.ttl === expiry?.AttributeName ? 'present' : 'incomplete')
    }
    return found
  } finally {
    client.destroy()
  }
}
