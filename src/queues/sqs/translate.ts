import { Impossible } from '../../kernel/assert.ts'
import { QueueFault, QueueRefused, QueueThrottled, QueueUnavailable } from '../faults.ts'

/** The service's error in the words of the port. The original is the cause. */
export const queueFaultOf = (error: unknown): QueueFault => {
  if (error instanceof QueueFault) return error
  if (error instanceof Impossible) throw error
  const { name, message, status } = describe(error)
  return faultFor(name, status, `${name}: ${message}`, error)
}

/** The same for one entry of a batch that failed alone. */
export const entryFaultOf = (code: string, senderFault: boolean, message: string): QueueFault =>
  faultFor(code, senderFault ? 400 : 500, `${code}: ${message}`, undefined)

/** Whether an entry failed because its receipt is good for nothing any more. A receipt is the one value in it to be invalid. */
export const isStale = (code: string): boolean => staleReceipts.has(bare(code))

/** Names come with a namespace from some servers (`AWS.SimpleQueueService.…`, `com.amazonaws.sqs#…`). */
const bare = (name: string): string => name.slice(Math.max(name.lastIndexOf('.'), name.lastIndexOf('#')) + 1)

const faultFor = (name: string, status: number | undefined, text: string, cause: unknown): QueueFault => {
  const known = bare(name)
  if (throttles.has(known) || status === 429) return new QueueThrottled(text, { cause })
  if (status === undefined || status >= 500 || passing.has(known)) return new QueueUnavailable(text, { cause })
  return new QueueRefused(text, { cause })
}

const throttles: ReadonlySet<string> = new Set([
  'KmsThrottled',
  'OverLimit',
  'RequestLimitExceeded',
  'RequestThrottled',
  'RequestThrottledException',
  'SlowDown',
  'Throttling',
  'ThrottlingException',
  'ThrottledException',
  'TooManyRequestsException',
])

/** Refusals that pass by themselves: credentials are fetched anew, clocks are corrected. */
const passing: ReadonlySet<string> = new Set([
  'ExpiredToken',
  'ExpiredTokenException',
  'RequestExpired',
  'RequestTimeTooSkewed',
  'RequestTimeout',
])

const staleReceipts: ReadonlySet<string> = new Set([
  'InvalidParameterValue',
  'MessageNotInflight',
  'ReceiptHandleIsInvalid',
])

const describe = (error: unknown) => {
  const raw = (typeof error === 'object' && error !== null ? error : {}) as {
    readonly name?: unknown
    readonly message?: unknown
    readonly $metadata?: { readonly httpStatusCode?: unknown }
  }
  const status = raw.$metadata?.httpStatusCode
  return {
    name: typeof raw.name === 'string' ? raw.name : 'unknown error',
    message: typeof raw.message === 'string' ? raw.message : String(error),
    status: typeof status === 'number' ? status : undefined,
  }
}
