import type { Action, Verdict, Write } from '../port.ts'
import type { Answer, Effort, Send } from './call.ts'
import { type Request, toRequest } from './request.ts'
import { fromItem } from './row.ts'
import { refusalOf } from './translate.ts'
import { counted, done, failed, rowAfter, unitsOf, type Wire } from './wire.ts'

/** One write in a call of its own: an action, or a transaction where atomicity was asked for. */
export const createSingle = (wire: Wire) => {
  const { call, schemaOf, nameOf } = wire
  return async (write: Write, until: number): Promise<Verdict> => {
    const requests = write.actions.map((action) => toRequest(schemaOf(action.table), nameOf(action.table), action))
    const { operation, send } = sending(wire, write, requests)
    const effort: Effort = { operation, twice: isRepeatable(write) ? 'safe' : 'unsafe', until }
    try {
      return await call(effort, orRefused(send))
    } catch (error) {
      return failed(error)
    }
  }
}

/** A transaction carries a token that makes its second sending an echo of the first; a single action has none. */
const isRepeatable = ({ actions }: Write): boolean => {
  const [action] = actions
  if (!action || actions.length > 1 || action.kind === 'check') return true
  return action.if === undefined && (action.kind !== 'update' || action.add === undefined)
}

const sending = (
  { client, random }: Wire,
  write: Write,
  requests: readonly Request[],
): { readonly operation: string; readonly send: Send<Verdict> } => {
  const [action] = write.actions as readonly [Action]
  const [request] = requests as readonly [Request]
  if (requests.length > 1 || 'ConditionCheck' in request) {
    const input = {
      TransactItems: [...requests],
      ClientRequestToken: Buffer.from(random.bytes(16)).toString('hex'),
      ...counted,
    }
    return {
      operation: 'TransactWriteItems',
      send: async (abortSignal) => {
        const { ConsumedCapacity } = await client.transactWriteItems(input, { abortSignal })
        return { output: done(), units: unitsOf(ConsumedCapacity) }
      },
    }
  }
  if ('Put' in request) {
    return {
      operation: 'PutItem',
      send: async (abortSignal) => {
        const { ConsumedCapacity } = await client.putItem({ ...request.Put, ...counted }, { abortSignal })
        return { output: done(rowAfter(action)), units: unitsOf(ConsumedCapacity) }
      },
    }
  }
  if ('Delete' in request) {
    return {
      operation: 'DeleteItem',
      send: async (abortSignal) => {
        const { ConsumedCapacity } = await client.deleteItem({ ...request.Delete, ...counted }, { abortSignal })
        return { output: done(), units: unitsOf(ConsumedCapacity) }
      },
    }
  }
  return {
    operation: 'UpdateItem',
    send: async (abortSignal) => {
      const input = { ...request.Update, ...counted, ReturnValues: 'ALL_NEW' } as const
      const { Attributes, ConsumedCapacity } = await client.updateItem(input, { abortSignal })
      return { output: done(Attributes && fromItem(Attributes)), units: unitsOf(ConsumedCapacity) }
    },
  }
}

/** A condition that did not hold is an answer, not a failure: it must not reach the retries. */
const orRefused =
  (send: Send<Verdict>): Send<Verdict> =>
  async (signal): Promise<Answer<Verdict>> => {
    try {
      return await send(signal)
    } catch (error) {
      const output = refusalOf(error)
      if (output) return { output, units: 0 }
      throw error
    }
  }
