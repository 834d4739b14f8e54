import type { Clock } from '../../kernel/clock.ts'
import { QueueRefused } from '../faults.ts'
import { nameOf, type Part, type QueueUrls } from './addresses.ts'
import { withDeadline } from './deadline.ts'
import { connectionDefaults, openClient, type SqsConnection } from './service.ts'
import { queueFaultOf } from './translate.ts'

export interface ProvisionOptions extends Pick<SqsConnection, 'region' | 'endpoint' | 'credentials'> {
  readonly prefix: string
  readonly queues: readonly string[]
  /** False only for stand-ins that know no encryption at rest. */
  readonly encrypted?: boolean
}

/** Seconds, as text, as the service wants it. There is no redrive policy: what is a dead letter is ours to say. */
export const queueAttributes = {
  ReceiveMessageWaitTimeSeconds: '20',
  MessageRetentionPeriod: '1209600',
  VisibilityTimeout: '300',
}
/** At rest, with keys that the service keeps. */
export const encryption = { SqsManagedSseEnabled: 'true' }
export const queueParts: readonly Part[] = ['high', 'normal', 'low', 'dead']

/** Creates the queues that are not there and corrects those that are. Calling it again changes nothing. */
export const provisionQueues = async (
  deps: { readonly clock: Clock },
  options: ProvisionOptions,
): Promise<Readonly<Record<string, QueueUrls>>> => {
  const sdk = await import('@aws-sdk/client-sqs')
  const client = await openClient(options, connectionDefaults.sendSockets)
  const call = <Result>(work: (abortSignal: AbortSignal) => Promise<Result>) =>
    withDeadline(deps.clock, connectionDefaults.callMs, undefined, work).catch((error: unknown) => {
      throw queueFaultOf(error)
    })
  const create = (QueueName: string, Attributes: Record<string, string>) =>
    call((abortSignal) => client.send(new sdk.CreateQueueCommand({ QueueName, Attributes }), { abortSignal }))
  const correct = async (QueueName: string, Attributes: Record<string, string>) => {
    const found = await call((abortSignal) => client.send(new sdk.GetQueueUrlCommand({ QueueName }), { abortSignal }))
    const change = new sdk.SetQueueAttributesCommand({ QueueUrl: found.QueueUrl, Attributes })
    await call((abortSignal) => client.send(change, { abortSignal }))
    return found
  }
  const wanted = options.encrypted === false ? queueAttributes : { ...queueAttributes, ...encryption }
  /** The second way is for a queue that is there already and differs. */
  const ensure = async (name: string): Promise<string> => {
    const ways = [() => create(name, wanted), () => correct(name, wanted)]
    let refused: unknown
    for (const way of ways) {
      try {
        const { QueueUrl } = await way()
        if (QueueUrl) return QueueUrl
      } catch (error) {
        if (!(error instanceof QueueRefused)) throw error
        refused ??= error
      }
    }
    throw refused ?? new QueueRefused(`the service gave no address for ${name}`)
  }

  try {
    const entries = options.queues.map(async (queue) => {
      const urls = await Promise.all(
        queueParts.map(async (part) => [part, await ensure(nameOf(options.prefix, queue, part))]),
      )
      return [queue, Object.fromEntries(urls) as QueueUrls] as const
    })
    return Object.fromEntries(await Promise.all(entries))
  } finally {
    client.destroy()
  }
}
