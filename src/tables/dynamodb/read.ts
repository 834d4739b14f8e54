import type { QueryCommandInput } from '@aws-sdk/client-dynamodb'
import { assert } from '../../kernel/assert.ts'
import { keyOfRow } from '../condition.ts'
import type { Key, Page, Range, Row, TableSchema, Tables } from '../port.ts'
import type { Answer } from './call.ts'
import { createNaming, isEmptyRange, rangeText } from './expression.ts'
import { vendorLimits } from './limits.ts'
import { pack } from './pack.ts'
import { fromItem, type Item, itemId, keyRow, toItem } from './row.ts'
import { counted, unitsOf, type Wire } from './wire.ts'

type Late<Verb extends (...args: never[]) => unknown> = (until: number, ...args: Parameters<Verb>) => ReturnType<Verb>

/** The verbs that read, each with the time by which it must be over. */
export interface Reads {
  readonly get: Late<Tables['get']>
  readonly getMany: Late<Tables['getMany']>
  readonly query: Late<Tables['query']>
  readonly lookup: Late<Tables['lookup']>
}

export const createReads = (wire: Wire): Reads => {
  const { client, call, schemaOf, nameOf } = wire

  const getChunk = async (until: number, table: string, keys: readonly Item[]): Promise<readonly Item[]> => {
    const name = nameOf(table)
    const found: Item[] = []
    let left = [...keys]
    const send = async (abortSignal: AbortSignal): Promise<Answer<readonly Item[]>> => {
      const sent = left
      const RequestItems = { [name]: { Keys: sent, ConsistentRead: true } }
      const answer = await client.batchGetItem({ RequestItems, ...counted }, { abortSignal })
      abortSignal.throwIfAborted()
      found.push(...(answer.Responses?.[name] ?? []))
      left = answer.UnprocessedKeys?.[name]?.Keys ?? []
      const units = unitsOf(answer.ConsumedCapacity)
      if (left.length === 0) return { output: found, units }
      return { output: found, units, left: left.length < sent.length ? 'some' : 'all' }
    }
    return call({ operation: 'BatchGetItem', twice: 'read', until }, send)
  }

  const queryItems = async (until: number, range: Range, input: QueryCommandInput): Promise<Page<Row>> => {
    if (isEmptyRange(range)) return { entries: [] }
    const answer = await call({ operation: 'Query', twice: 'read', until }, async (abortSignal) => {
      const output = await client.query(input, { abortSignal })
      return { output, units: unitsOf(output.ConsumedCapacity) }
    })
    const entries = (answer.Items ?? []).map(fromItem)
    return answer.LastEvaluatedKey ? { entries, next: toCursor(answer.LastEvaluatedKey) } : { entries }
  }

  return {
    get: async (until, table, key) => {
      const Key = toItem(keyRow(schemaOf(table), key))
      const input = { TableName: nameOf(table), Key, ConsistentRead: true, ...counted }
      const item = await call({ operation: 'GetItem', twice: 'read', until }, async (abortSignal) => {
        const { Item, ConsumedCapacity } = await client.getItem(input, { abortSignal })
        return { output: Item, units: unitsOf(ConsumedCapacity) }
      })
      return item && fromItem(item)
    },
    getMany: async (until, table, keys) => {
      const schema = schemaOf(table)
      const wanted = keys.map((key) => toItem(keyRow(schema, key)))
      // The service refuses a key that comes twice.
      const once = new Map(wanted.map((key) => [itemId(schema, key), key]))
      const chunks = pack([...once.values()], vendorLimits.batchGet)
      const found = await Promise.all(chunks.map((chunk) => getChunk(until, table, chunk)))
      const rows = new Map(found.flat().map((item) => [itemId(schema, item), fromItem(item)]))
      return wanted.map((key) => rows.get(itemId(schema, key)))
    },
    query: async (until, table, range) => {
      const schema = schemaOf(table)
      const input = queryInput(nameOf(table), schema, range)
      return queryItems(until, range, { ...input, ConsistentRead: true })
    },
    lookup: async (until, table, index, range) => {
      const schema = schemaOf(table)
      const input = queryInput(nameOf(table), indexOf(schema, index), range)
      const { entries, ...rest } = await queryItems(until, range, { ...input, IndexName: index })
      return { entries: entries.map((row): Key => keyOfRow(schema, row)), ...rest }
    },
  }
}

const indexOf = (schema: TableSchema, index: string) => {
  const key = schema.indexes[index]
  assert(key, `no index '${index}' on ${schema.name}`)
  return key
}

const queryInput = (TableName: string, key: Parameters<typeof rangeText>[0], range: Range): QueryCommandInput => {
  assert(range.limit >= 1, `a page of ${range.limit}`)
  const naming = createNaming()
  return {
    TableName,
    KeyConditionExpression: rangeText(key, range, naming),
    ...naming.placeholders(),
    ScanIndexForward: !range.descending,
    Limit: range.limit,
    ...(range.after === undefined ? {} : { ExclusiveStartKey: fromCursor(range.after) }),
    ...counted,
  }
}

const toCursor = (key: Item): string => Buffer.from(JSON.stringify(fromItem(key))).toString('base64url')

/** Cursors are made here and only handed around: one that cannot be read is a bug of whoever hands it in. */
const fromCursor = (cursor: string): Item => {
  try {
    return toItem(JSON.parse(Buffer.from(cursor, 'base64url').toString()) as Row)
  } catch {
    assert(false, `'${cursor}' is no cursor`)
  }
}
