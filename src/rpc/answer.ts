// Answers to requests that are no calls.

import type { OutgoingHttpHeaders } from 'node:http'
import { type AnyRequest, type AnyResponse, closeAfter } from './connection.ts'

/** Whether all is well, or why not. */
export const answerHealth = (request: AnyRequest, response: AnyResponse, reason: string | undefined): void => {
  const isAsked = request.method === 'GET' || request.method === 'HEAD'
  if (!isAsked) answer(request, response, 405, { code: 'unimplemented', message: 'GET only' })
  else if (reason === undefined) answer(request, response, 200, { ok: true })
  else answer(request, response, 503, { ok: false, reason })
}

export const answer = (request: AnyRequest, response: AnyResponse, status: number, body: object): void => {
  const text = JSON.stringify(body)
  const headers: OutgoingHttpHeaders = {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(text),
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
  }
  if (status !== 200) closeAfter(response)
  // Both versions have the same verbs under types that do not agree.
  const plain = response as { writeHead(status: number, headers: OutgoingHttpHeaders): void; end(text?: string): void }
  plain.writeHead(status, headers)
  plain.end(request.method === 'HEAD' ? undefined : text)
}
