import { Code, ConnectError } from '@connectrpc/connect'
import { type ErrorInfo, ErrorInfoSchema } from '../../api/gen/millrace/v1/service_pb.js'
import { type Fault, isFault } from '../kernel/fault.ts'
import { type AnswerDetails, ServerFault, ServerForeign, Unreachable } from './faults.ts'

export interface Called {
  readonly address: string
  readonly requestId?: string | undefined
}

/** A failed call as a fault. The server says what it means in an ErrorInfo; without one the failure came on the way. */
export const faultOf = (error: unknown, { address, requestId }: Called): Fault => {
  if (isFault(error)) return error
  const failure = ConnectError.from(error)
  const [info] = failure.findDetails(ErrorInfoSchema)
  if (info?.code) return faultOfInfo(info, { requestId, cause: failure, ...advised(failure, info) })
  const details = { requestId, cause: failure }
  // A proxy before the server may refuse us in its stead: to the caller it is the same thing.
  if (failure.code === Code.Unauthenticated) {
    return new ServerFault('CALL_UNAUTHENTICATED', `${failure.rawMessage}: ${tokenAdvice}`, 'never', details)
  }
  if (cameOnTheWay(failure)) return new Unreachable(address, failure.rawMessage, details)
  return new ServerForeign(address, failure.rawMessage, details)
}

/** What the server said about one call, or about one job of a bulk call. */
export const faultOfInfo = (info: ErrorInfo, details: AnswerDetails & { readonly advice?: string } = {}): ServerFault =>
  new ServerFault(
    info.code,
    details.advice === undefined ? info.message : `${info.message}: ${details.advice}`,
    info.retryable ? 'later' : 'never',
    {
      ...details,
      ...(info.field ? { field: info.field } : {}),
      ...(info.limit ? { limit: info.limit } : {}),
      ...(info.retryAfterMs ? { retryAfterMs: Number(info.retryAfterMs) } : {}),
      ...(info.jobId ? { jobId: info.jobId } : {}),
    },
  )

const tokenAdvice = "give the server's token, which it keeps in its token file"

const advised = (failure: ConnectError, info: ErrorInfo) =>
  failure.code === Code.Unauthenticated && !info.message.includes('token file') ? { advice: tokenAdvice } : {}

/** What a lost connection, a proxy without a server behind it and a time limit of ours look like. */
const wayCodes: ReadonlySet<Code> = new Set([Code.Unavailable, Code.Aborted, Code.Canceled, Code.DeadlineExceeded])

const cameOnTheWay = (failure: ConnectError): boolean => wayCodes.has(failure.code) || hasSystemCode(failure.cause)

/**
 * Sockets and sessions fail with errors of Node, which have names such as ENOENT or ERR_HTTP2_SESSION_ERROR. The one left out
 * says that the other side does not speak HTTP/2, which does not pass.
 */
const hasSystemCode = (cause: unknown): boolean =>
  cause instanceof Error && 'code' in cause && typeof cause.code === 'string' && cause.code !== 'ERR_HTTP2_ERROR'
