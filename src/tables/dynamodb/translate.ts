// Where the service's failures become ours, once. Above this folder nobody has heard of their names.

import { TableConflict, TableFault, TableLimit, TableRefused, TableThrottled, TableUnavailable } from '../faults.ts'
import type { Verdict } from '../port.ts'
import { fromItem, type Item } from './row.ts'

type Meaning = 'throttled' | 'conflict' | 'unsent' | 'unavailable' | 'limit' | 'refused'

/** Names of errors, codes of cancellation reasons and codes of sockets. What is not here is judged by its status. */
const meanings: Readonly<Record<string, Meaning>> = {
  ProvisionedThroughputExceededException: 'throttled',
  ProvisionedThroughputExceeded: 'throttled',
  RequestLimitExceeded: 'throttled',
  Throttling: 'throttled',
  ThrottlingError: 'throttled',
  ThrottlingException: 'throttled',
  LimitExceededException: 'throttled',
  TransactionConflict: 'conflict',
  TransactionConflictException: 'conflict',
  TransactionInProgressException: 'conflict',
  ReplicatedWriteConflictException: 'conflict',
  ItemCollectionSizeLimitExceeded: 'limit',
  ItemCollectionSizeLimitExceededException: 'limit',
  // Nothing was done, and it passes: credentials are fetched anew, clocks are corrected.
  ExpiredToken: 'unsent',
  ExpiredTokenException: 'unsent',
  RequestExpired: 'unsent',
  RequestTimeTooSkewed: 'unsent',
  // Nothing left this machine: no credentials yet, no address, nobody listening.
  CredentialsProviderError: 'unsent',
  EAI_AGAIN: 'unsent',
  ECONNREFUSED: 'unsent',
  EHOSTUNREACH: 'unsent',
  ENETUNREACH: 'unsent',
  ENOTFOUND: 'unsent',
}

/** What we look at in something thrown by the service's library. */
interface VendorError {
  readonly name?: string
  readonly message?: string
  readonly code?: unknown
  readonly syscall?: string
  readonly Item?: Item
  readonly CancellationReasons?: readonly Reason[]
  readonly $metadata?: { readonly httpStatusCode?: number; readonly clockSkewCorrected?: boolean }
}

interface Reason {
  readonly Code?: string
  readonly Message?: string
  readonly Item?: Item
}

/** The verdict of a condition that did not hold, or undefined if the error is about something else. */
export const refusalOf = (error: unknown): Verdict | undefined => {
  const { name, Item, CancellationReasons = [] } = error as VendorError
  if (name === 'ConditionalCheckFailedException') return refused(0, Item)
  const action = CancellationReasons.findIndex((reason) => reason.Code === 'ConditionalCheckFailed')
  return action < 0 ? undefined : refused(action, CancellationReasons[action]?.Item)
}

const refused = (action: number, item: Item | undefined): Verdict => ({
  kind: 'refused',
  action,
  row: item && Object.keys(item).length > 0 ? fromItem(item) : undefined,
})

export const translate = (cause: unknown, retryAfterMs: number): TableFault => {
  if (cause instanceof TableFault) return cause
  const error = cause as VendorError
  switch (meaningOf(error)) {
    case 'throttled':
      return new TableThrottled('the storage refused the call for now', { cause, retryAfterMs })
    case 'conflict':
      return new TableConflict('another transaction was writing the same rows', { cause, retryAfterMs })
    case 'unsent':
      return new TableUnavailable('the storage could not be reached', 'none', { cause, retryAfterMs })
    case 'unavailable':
      return new TableUnavailable('the storage gave no answer that tells the outcome', 'unknown', {
        cause,
        retryAfterMs,
      })
    case 'limit':
      return new TableLimit(`the write is larger than the storage takes: ${reasonOf(error)}`, { cause })
    case 'refused':
      return new TableRefused(`the storage refuses the call: ${reasonOf(error)}`, { cause })
  }
}

const meaningOf = (error: VendorError): Meaning => {
  if (error.CancellationReasons) return meaningOfReasons(error.CancellationReasons)
  const known = meanings[error.name ?? ''] ?? meanings[String(error.code)]
  if (known) return known
  if (error.syscall === 'connect' || error.syscall === 'getaddrinfo') return 'unsent'
  // The library has set its clock by the answer; the same call is signed rightly next time.
  if (error.$metadata?.clockSkewCorrected) return 'unsent'
  const status = error.$metadata?.httpStatusCode ?? 0
  if (status === 429) return 'throttled'
  if (status < 400 || status >= 500) return 'unavailable'
  return status === 413 || saysTooLarge(error.message) ? 'limit' : 'refused'
}

/** A final reason wins over one that passes: repeating the transaction could not help. */
const meaningOfReasons = (reasons: readonly Reason[]): Meaning => {
  const codes = reasons.filter((reason) => reason.Code !== undefined && reason.Code !== 'None')
  const found = codes.map(
    (reason) => meanings[reason.Code ?? ''] ?? (saysTooLarge(reason.Message) ? 'limit' : 'refused'),
  )
  const order = ['limit', 'refused', 'throttled', 'conflict'] as const
  return order.find((meaning) => found.includes(meaning)) ?? 'conflict'
}

/** The service has one name for every malformed request; only its text tells a row that grew too large. */
const saysTooLarge = (message = ''): boolean => /size .*exceeded|exceed.* size|too large/i.test(message)

const reasonOf = (error: VendorError): string => {
  const reasons = error.CancellationReasons?.flatMap(({ Code, Message }) => (Message ? [`${Code}: ${Message}`] : []))
  return reasons?.length ? reasons.join('; ') : (error.message ?? 'no reason given')
}
