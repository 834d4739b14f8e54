import type { WriteRequest } from '@aws-sdk/client-dynamodb'
import { assert } from '../../kernel/assert.ts'
import type { Action, Verdict, Write } from '../port.ts'
import type { Answer } from './call.ts'
import { vendorLimits } from './limits.ts'
import { pack } from './pack.ts'
import { actionId, itemId, keyRow, toItem, wireBytes } from './row.ts'
import { counted, done, failed, rowAfter, unitsOf, type Wire } from './wire.ts'

/** A write of a group, and where its verdict goes. */
export interface Entry {
  readonly write: Write
  readonly settle: (verdict: Verdict) => void
}

type Plain = Action & { kind: 'put' | 'delete' }

/** Whether a write may travel with strangers: one put or delete without a condition. */
export const isPlain = ({ actions }: Write): boolean =>
  actions.length === 1 && actions.every((action) => isPutOrDelete(action) && action.if === undefined)

const isPutOrDelete = (action: Action): action is Plain => action.kind === 'put' || action.kind === 'delete'

/** Plain writes of different rows, in as few calls as the limits allow. Resolves when each has its verdict. */
export const createBatch = (wire: Wire) => {
  const { client, call, schemaOf, nameOf } = wire
  const idOf = ({ write }: Entry) => actionId(schemaOf(plainOf(write).table), plainOf(write))

  const run = async (chunk: readonly Entry[], until: number): Promise<void> => {
    let left = chunk
    /** Only what the service left over is sent again. */
    const send = async (abortSignal: AbortSignal): Promise<Answer<void>> => {
      const sent = left
      const answer = await client.batchWriteItem({ RequestItems: requestsOf(wire, sent), ...counted }, { abortSignal })
      abortSignal.throwIfAborted()
      const over = idsOf(wire, sent, answer.UnprocessedItems ?? {})
      left = sent.filter((entry) => over.has(idOf(entry)))
      assert(left.length === over.size, 'something was left over that was never sent')
      for (const entry of sent) if (!over.has(idOf(entry))) entry.settle(done(rowAfter(plainOf(entry.write))))
      const units = unitsOf(answer.ConsumedCapacity)
      if (left.length === 0) return { output: undefined, units }
      return { output: undefined, units, left: left.length < sent.length ? 'some' : 'all' }
    }
    try {
      await call({ operation: 'BatchWriteItem', twice: 'safe', until }, send)
    } catch (error) {
      const verdict = failed(error)
      // One bad row spoils the whole call. Alone, each gets the answer that is its own.
      const isSpoilt = verdict.fault.retry === 'never' && left.length > 1
      if (isSpoilt) await Promise.all(left.map((entry) => run([entry], until)))
      else for (const entry of left) entry.settle(verdict)
    }
  }

  return async (entries: readonly Entry[], until: number): Promise<void> => {
    const chunks = pack(entries, room, ({ write }) => requestBytes(nameOf, plainOf(write), schemaOf))
    await Promise.all(chunks.map((chunk) => run(chunk, until)))
  }
}

const plainOf = (write: Write): Plain => {
  const [action] = write.actions
  assert(action && isPutOrDelete(action), 'not a plain write')
  return action
}

const requestsOf = ({ schemaOf, nameOf }: Wire, entries: readonly Entry[]): Record<string, WriteRequest[]> => {
  const byTable = new Map<string, WriteRequest[]>()
  for (const action of entries.map(({ write }) => plainOf(write))) {
    const request: WriteRequest =
      action.kind === 'put'
        ? { PutRequest: { Item: toItem(action.row) } }
        : { DeleteRequest: { Key: toItem(keyRow(schemaOf(action.table), action.key)) } }
    const requests = byTable.get(nameOf(action.table))
    if (requests) requests.push(request)
    else byTable.set(nameOf(action.table), [request])
  }
  return Object.fromEntries(byTable)
}

/** The rows that requests are about. */
const idsOf = (
  { schemaOf, nameOf }: Wire,
  sent: readonly Entry[],
  byTable: Readonly<Record<string, readonly WriteRequest[]>>,
): ReadonlySet<string> => {
  const tables = [...new Set(sent.map(({ write }) => plainOf(write).table))]
  return new Set(
    tables.flatMap((table) =>
      (byTable[nameOf(table)] ?? []).map(({ PutRequest, DeleteRequest }) =>
        itemId(schemaOf(table), PutRequest?.Item ?? DeleteRequest?.Key ?? {}),
      ),
    ),
  )
}

/** Room for what surrounds the requests of a call. */
const envelopeBytes = 128
const room = {
  items: vendorLimits.batchWrite.items,
  bytes: vendorLimits.batchWrite.bytes - envelopeBytes,
}

/** At most what one request adds to the call, as if it were alone of its table. */
const requestBytes = (nameOf: Wire['nameOf'], action: Plain, schemaOf: Wire['schemaOf']): number => {
  const row = action.kind === 'put' ? action.row : keyRow(schemaOf(action.table), action.key)
  return `"${nameOf(action.table)}":[{"DeleteRequest":{"Item":}}],`.length + wireBytes(row)
}
