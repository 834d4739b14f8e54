import type { Clock } from '../../kernel/clock.ts'
import { nameOf } from './addresses.ts'
import { withDeadline } from './deadline.ts'
import { encryption, type ProvisionOptions, queueAttributes, queueParts } from './provision.ts'
import { connectionDefaults, openClient } from './service.ts'
import { queueFaultOf } from './translate.ts'

/** What is there of a queue: nothing, all of it, or a queue with other attributes. */
export type QueueFound = 'absent' | 'present' | 'different'

/** Looks what provisioning would find: the parts of each queue, in their order. Changes nothing. */
export const lookAtQueues = async (
  deps: { readonly clock: Clock },
  options: ProvisionOptions,
): Promise<readonly QueueFound[]> => {
  const sdk = await import('@aws-sdk/client-sqs')
  const client = await openClient(options, connectionDefaults.sendSockets)
  const wanted = Object.entries(options.encrypted === false ? queueAttributes : { ...queueAttributes, ...encryption })
  const look = async (QueueName: string, abortSignal: AbortSignal): Promise<QueueFound> => {
    try {
      const { QueueUrl } = await client.send(new sdk.GetQueueUrlCommand({ QueueName }), { abortSignal })
      const ask = new sdk.GetQueueAttributesCommand({ QueueUrl, AttributeNames: ['All'] })
      const { Attributes = {} } = await client.send(ask, { abortSignal })
      const now: Readonly<Record<string, string | undefined>> = Attributes
      // A stand-in that knows no encryption says nothing about it, and nothing can be corrected there.
      return wanted.every(([name, value]) => (now[name] ?? value) === value) ? 'present' : 'different'
    } catch (error) {
      if (error instanceof sdk.QueueDoesNotExist) return 'absent'
      throw error
    }
  }
  try {
    const names = options.queues.flatMap((queue) => queueParts.map((part) => nameOf(options.prefix, queue, part)))
    return await Promise.all(
      names.map((name) =>
        withDeadline(deps.clock, connectionDefaults.callMs, undefined, (signal) => look(name, signal)),
      ),
    )
  } catch (error) {
    throw queueFaultOf(error)
  } finally {
    client.destroy()
  }
}
