import type { DynamoDB } from '@aws-sdk/client-dynamodb'
import type { RetryPolicy } from '../../kernel/retry.ts'
import { TableRefused } from '../faults.ts'
import type { TableSchema } from '../port.ts'

export interface DynamodbOptions {
  readonly schemas: readonly TableSchema[]
  /** Stands before the name of every table. */
  readonly tablePrefix?: string
  /** Where none is given, the service's library looks for one in its usual places. */
  readonly region?: string
  /** Another address than the region's: a stand-in on this machine, or a private endpoint. */
  readonly endpoint?: string
  /** Where none are given, the service's library looks for them in its usual places. */
  readonly credentials?: {
    readonly accessKeyId: string
    readonly secretAccessKey: string
    readonly sessionToken?: string
  }
  /** The longest that any verb takes, retries included. Less than ten minutes. */
  readonly deadlineMs: number
  /** The longest that one call takes. */
  readonly callMs?: number
  /** The most calls at once. */
  readonly sockets?: number
  readonly retry: RetryPolicy
}

export const withDefaults = (options: DynamodbOptions) => ({
  tablePrefix: 'millrace_',
  callMs: Math.min(5_000, options.deadlineMs),
  sockets: 64,
  ...options,
})

export type Settings = ReturnType<typeof withDefaults>

/** The service's library, loaded only now, with its own retries and timers off: those are ours (call.ts). */
export const connect = async (settings: Settings): Promise<DynamoDB> => {
  const vendor = await import('@aws-sdk/client-dynamodb')
  const { region, endpoint, credentials, sockets, callMs } = settings
  const agent = { keepAlive: true, maxSockets: sockets }
  const client = new vendor.DynamoDB({
    ...(region === undefined ? {} : { region }),
    ...(endpoint === undefined ? {} : { endpoint }),
    // A copy: the library writes a mark of its own into what it is given.
    ...(credentials === undefined ? {} : { credentials: { ...credentials } }),
    maxAttempts: 1,
    endpointDiscoveryEnabled: false,
    requestHandler: {
      httpAgent: agent,
      httpsAgent: agent,
      connectionTimeout: 0,
      requestTimeout: 0,
      socketTimeout: 0,
      socketAcquisitionWarningTimeout: callMs,
    },
  })
  try {
    await client.config.region()
  } catch (cause) {
    client.destroy()
    throw new TableRefused('no region is configured', { cause })
  }
  return client
}
