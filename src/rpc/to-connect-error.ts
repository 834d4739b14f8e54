// From faults to what travels: the only mapping there is. A test walks all catalogues and fails if a code is missing here.

import { create } from '@bufbuild/protobuf'
import { Code, ConnectError } from '@connectrpc/connect'
import { type ErrorInfo, ErrorInfoSchema } from '../../api/gen/millrace/v1/service_pb.js'
import { type Fault, isFault } from '../kernel/fault.ts'

/** Fault code → what a caller of the API is told. */
export const codes: Readonly<Record<string, Code>> = {
  // The caller's mistake.
  INPUT_INVALID: Code.InvalidArgument,
  CURSOR_REFUSED: Code.InvalidArgument,
  FOLLOW_INVALID: Code.InvalidArgument,
  TABLE_LIMIT: Code.InvalidArgument,
  QUEUE_UNKNOWN: Code.NotFound,
  JOB_UNKNOWN: Code.NotFound,
  REQUEST_REUSED: Code.AlreadyExists,
  CLAIM_LOST: Code.FailedPrecondition,
  JOB_NOT_READY: Code.FailedPrecondition,
  // Who calls.
  CALL_UNAUTHENTICATED: Code.Unauthenticated,
  CALL_FOREIGN: Code.PermissionDenied,
  TOKEN_REFUSED: Code.PermissionDenied,
  // Not now.
  STORE_BUSY: Code.ResourceExhausted,
  SERVER_BUSY: Code.ResourceExhausted,
  TABLE_THROTTLED: Code.ResourceExhausted,
  TABLE_FULL: Code.ResourceExhausted,
  QUEUE_THROTTLED: Code.ResourceExhausted,
  TABLE_CONFLICT: Code.Aborted,
  REQUEST_SLOW: Code.DeadlineExceeded,
  TABLE_UNAVAILABLE: Code.Unavailable,
  QUEUE_UNAVAILABLE: Code.Unavailable,
  READER_STALLED: Code.Unavailable,
  // Not here any more.
  SERVER_DRAINING: Code.Unavailable,
  TABLE_CLOSED: Code.Unavailable,
  QUEUE_CLOSED: Code.Unavailable,
  BATCHER_CLOSED: Code.Unavailable,
  LOG_CLOSED: Code.Unavailable,
  BATCH_DISCARDED: Code.Unavailable,
  HOLDER_LOST: Code.Unavailable,
  DIRECTORY_HELD: Code.Unavailable,
  // Nothing that the caller could mend: the code travels, the text stays here.
  TABLE_REFUSED: Code.Internal,
  QUEUE_REFUSED: Code.Internal,
  TABLE_CORRUPT: Code.DataLoss,
  DIRECTORY_DAMAGED: Code.DataLoss,
  DIRECTORY_UNUSABLE: Code.Internal,
  FORMAT_UNKNOWN: Code.Internal,
  ENGINE_MISSING: Code.Internal,
  BATCH_LIMITS: Code.Internal,
  CONFIG_INVALID: Code.Internal,
  SERVER_UNAUTHENTICATED: Code.Internal,
  ADDRESS_UNUSABLE: Code.Internal,
}

const hiddenText = 'the server failed; its log says more'

/** A fault as an error of its code with everything it knows; anything else as an internal error that says nothing. */
export const toConnectError = (error: unknown): ConnectError => {
  if (error instanceof ConnectError) return error
  if (isAbort(error)) return new ConnectError('the call was given up', Code.Canceled)
  if (!isFault(error)) return new ConnectError(hiddenText, Code.Internal)
  const info = toErrorInfo(error)
  const metadata: Record<string, string> =
    error.retryAfterMs === undefined ? {} : { 'retry-after': String(Math.ceil(error.retryAfterMs / 1_000)) }
  return new ConnectError(info.message, codeOf(error), metadata, [{ desc: ErrorInfoSchema, value: info }])
}

/** Whether the error is a bug or a failure of the machine: what callers are not told, and the log is. */
export const isHidden = (error: unknown): boolean =>
  isFault(error) ? isSecret(codeOf(error)) : !(error instanceof ConnectError) && !isAbort(error)

export const toErrorInfo = (fault: Fault): ErrorInfo =>
  create(ErrorInfoSchema, {
    code: fault.code,
    message: isSecret(codeOf(fault)) ? hiddenText : fault.message,
    field: spelled(fault.field),
    limit: fault.limit ?? 0,
    retryable: fault.retry === 'later',
    retryAfterMs: BigInt(Math.max(0, Math.ceil(fault.retryAfterMs ?? 0))),
    jobId: 'jobId' in fault && typeof fault.jobId === 'string' ? fault.jobId : '',
  })

const codeOf = (fault: Fault): Code => codes[fault.code] ?? Code.Internal

const isSecret = (code: Code): boolean => code === Code.Internal || code === Code.DataLoss

/** The store has shorter names for some fields than the API. */
const apiNames: Readonly<Record<string, string>> = { token: 'taskToken', cursor: 'pageToken' }
const spelled = (field: string | undefined): string => (field === undefined ? '' : (apiNames[field] ?? field))

const isAbort = (error: unknown): boolean =>
  error instanceof Error && (error.name === 'AbortError' || error.name === 'TimeoutError')
