import type { ConditionCheck, Delete, Put, Update } from '@aws-sdk/client-dynamodb'
import { unreachable } from '../../kernel/assert.ts'
import type { Action, Condition, TableSchema } from '../port.ts'
import { conditionText, createNaming, type Naming, updateText } from './expression.ts'
import { keyRow, toItem } from './row.ts'

/** One action as the service spells it; alone and in a transaction it is the same. */
export type Request =
  | { readonly Put: Put }
  | { readonly Update: Update }
  | { readonly Delete: Delete }
  | { readonly ConditionCheck: ConditionCheck }

export const toRequest = (schema: TableSchema, TableName: string, action: Action): Request => {
  const naming = createNaming()
  // A refused condition answers with the row as it stood: the caller must not have to read it again.
  const shared = { TableName, ReturnValuesOnConditionCheckFailure: 'ALL_OLD' } as const
  switch (action.kind) {
    case 'put':
      return { Put: { ...shared, Item: toItem(action.row), ...conditionOf(schema, action.if, naming) } }
    case 'update': {
      const UpdateExpression = updateText(action, naming)
      const Key = toItem(keyRow(schema, action.key))
      return { Update: { ...shared, Key, UpdateExpression, ...conditionOf(schema, action.if, naming) } }
    }
    case 'delete':
      return {
        Delete: { ...shared, Key: toItem(keyRow(schema, action.key)), ...conditionOf(schema, action.if, naming) },
      }
    case 'check': {
      const Key = toItem(keyRow(schema, action.key))
      const ConditionExpression = conditionText(schema, action.if, naming)
      return { ConditionCheck: { ...shared, Key, ConditionExpression, ...naming.placeholders() } }
    }
    default:
      return unreachable(action)
  }
}

const conditionOf = (schema: TableSchema, condition: Condition | undefined, naming: Naming) => {
  const text = condition && conditionText(schema, condition, naming)
  return { ...(text === undefined ? {} : { ConditionExpression: text }), ...naming.placeholders() }
}
