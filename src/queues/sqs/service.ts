import type { BatchResultErrorEntry, SQSClient } from '@aws-sdk/client-sqs'
import type { Clock } from '../../kernel/clock.ts'
import { type QueueFault, QueueRefused } from '../faults.ts'
import { withDeadline } from './deadline.ts'
import { entryFaultOf, isStale, queueFaultOf } from './translate.ts'

/** How to reach the service. */
export interface SqsConnection {
  readonly region: string
  /** Another server than the region's own. */
  readonly endpoint?: string
  /** Absent: the usual places, and fetched anew before they expire. */
  readonly credentials?: {
    readonly accessKeyId: string
    readonly secretAccessKey: string
    readonly sessionToken?: string
  }
  /** The most connections for receiving. Each waiting receive takes three. */
  readonly pollSockets: number
  /** The most connections for everything else, and the most batches under way at once. */
  readonly sendSockets: number
  /** How long a call may take beyond the time it was asked to wait. */
  readonly callMs: number
}

export const connectionDefaults = { pollSockets: 150, sendSockets: 50, callMs: 10_000 } as const

export interface SqsMessage {
  readonly id: string
  readonly body: string
  readonly handle: string
  readonly receives: number
  readonly sentAt: number
}

/** What became of one entry of a batch: done, stale (a receipt that is good for nothing any more), or a fault. */
export type EntryOutcome = undefined | 'stale' | QueueFault

/** The few calls of the service that we make, with a deadline each and its errors translated. Nothing is retried here. */
export interface SqsService {
  urlOf(name: string): Promise<string>
  /** Nothing if it was aborted. */
  receive(url: string, ask: SqsAsk, signal?: AbortSignal): Promise<readonly SqsMessage[]>
  send(url: string, entries: readonly { body: string; delaySeconds: number }[]): Promise<readonly EntryOutcome[]>
  remove(url: string, handles: readonly string[]): Promise<readonly EntryOutcome[]>
  /** Hides messages for so long from now; 0 gives them back. */
  hide(url: string, entries: readonly { handle: string; seconds: number }[]): Promise<readonly EntryOutcome[]>
  close(): void
}

export interface SqsAsk {
  readonly max: number
  readonly waitSeconds: number
  readonly holdSeconds: number
}

/** Loads the vendor's library on the first use of this adapter, and not before. */
export const connect = async (clock: Clock, connection: SqsConnection): Promise<SqsService> => {
  const sdk = await import('@aws-sdk/client-sqs')
  // Long polls have connections of their own: with one pool they would take them all, and nothing could be finished.
  const polls = await openClient(connection, connection.pollSockets)
  const calls = await openClient(connection, connection.sendSockets)

  const call = async <Result>(work: (signal: AbortSignal) => Promise<Result>): Promise<Result> => {
    try {
      return await withDeadline(clock, connection.callMs, undefined, work)
    } catch (error) {
      throw queueFaultOf(error)
    }
  }

  return {
    urlOf: async (name) => {
      const answer = await call((abortSignal) =>
        calls.send(new sdk.GetQueueUrlCommand({ QueueName: name }), { abortSignal }),
      )
      if (!answer.QueueUrl) throw new QueueRefused(`no queue named ${name}`, { field: 'queue' })
      return answer.QueueUrl
    },
    receive: async (url, ask, signal) => {
      const command = new sdk.ReceiveMessageCommand({
        QueueUrl: url,
        MaxNumberOfMessages: ask.max,
        WaitTimeSeconds: ask.waitSeconds,
        VisibilityTimeout: ask.holdSeconds,
        MessageSystemAttributeNames: ['ApproximateReceiveCount', 'SentTimestamp'],
      })
      const ms = ask.waitSeconds * 1_000 + connection.callMs
      try {
        const answer = await withDeadline(clock, ms, signal, (abortSignal) => polls.send(command, { abortSignal }))
        return (answer.Messages ?? []).map((message) => ({
          id: message.MessageId ?? '',
          body: message.Body ?? '',
          handle: message.ReceiptHandle ?? '',
          receives: Number(message.Attributes?.ApproximateReceiveCount ?? 1),
          sentAt: Number(message.Attributes?.SentTimestamp ?? 0),
        }))
      } catch (error) {
        if (signal?.aborted) return []
        throw queueFaultOf(error)
      }
    },
    send: (url, entries) => {
      const Entries = entries.map((entry, index) => ({
        Id: String(index),
        MessageBody: entry.body,
        DelaySeconds: entry.delaySeconds,
      }))
      const command = new sdk.SendMessageBatchCommand({ QueueUrl: url, Entries })
      return call(async (abortSignal) => {
        const { Failed } = await calls.send(command, { abortSignal })
        return outcomes(entries.length, false, Failed)
      })
    },
    remove: (url, handles) => {
      const Entries = handles.map((ReceiptHandle, index) => ({ Id: String(index), ReceiptHandle }))
      const command = new sdk.DeleteMessageBatchCommand({ QueueUrl: url, Entries })
      return call(async (abortSignal) => {
        const { Failed } = await calls.send(command, { abortSignal })
        return outcomes(handles.length, true, Failed)
      })
    },
    hide: (url, entries) => {
      const Entries = entries.map((entry, index) => ({
        Id: String(index),
        ReceiptHandle: entry.handle,
        VisibilityTimeout: entry.seconds,
      }))
      const command = new sdk.ChangeMessageVisibilityBatchCommand({ QueueUrl: url, Entries })
      return call(async (abortSignal) => {
        const { Failed } = await calls.send(command, { abortSignal })
        return outcomes(entries.length, true, Failed)
      })
    },
    close: () => {
      polls.destroy()
      calls.destroy()
    },
  }
}

/** One client with its own connections. Retries are ours, so the library's are off. */
export const openClient = async (
  connection: Pick<SqsConnection, 'region' | 'endpoint' | 'credentials'>,
  maxSockets: number,
): Promise<SQSClient> => {
  const { SQSClient } = await import('@aws-sdk/client-sqs')
  const { NodeHttpHandler } = await import('@smithy/node-http-handler')
  const agent = { keepAlive: true, maxSockets }
  return new SQSClient({
    region: connection.region,
    maxAttempts: 1,
    // With an endpoint of our own the host in a queue's address is the server's opinion of itself, and often wrong.
    ...(connection.endpoint ? { endpoint: connection.endpoint, useQueueUrlAsEndpoint: false } : {}),
    // A copy: the library writes a mark of its own into what it is given.
    ...(connection.credentials ? { credentials: { ...connection.credentials } } : {}),
    requestHandler: new NodeHttpHandler({ connectionTimeout: 5_000, httpAgent: agent, httpsAgent: agent }),
  })
}

const outcomes = (
  count: number,
  receipts: boolean,
  failed: readonly BatchResultErrorEntry[] = [],
): readonly EntryOutcome[] => {
  const all: EntryOutcome[] = Array.from({ length: count }, () => undefined)
  for (const { Id, Code = 'Unknown', SenderFault = false, Message = '' } of failed) {
    all[Number(Id)] = receipts && isStale(Code) ? 'stale' : entryFaultOf(Code, SenderFault, Message)
  }
  return all
}
