// What may come in at the door. One grammar for names, limits with numbers, and never a recursion that input could deepen.

import { InputInvalid } from './faults.ts'
import type { EnqueueRequest, JobParams, Json } from './job.ts'

export const limits = {
  paramsBytes: 256 * 1024,
  resultBytes: 256 * 1024,
  errorBytes: 8 * 1024,
  /** Above this, params, results and errors are items of their own, so that the job row stays small. */
  inlineBytes: 1024,
  depth: 64,
  values: 50_000,
  argv: 1_000,
  delayMs: 366 * 24 * 60 * 60 * 1000,
  timeoutMs: 30 * 24 * 60 * 60 * 1000,
  bulk: 1_000,
  postponed: 1_000,
  lost: 3,
  unheard: 20,
} as const

const requestIdGrammar = /^[A-Za-z0-9][A-Za-z0-9._:@+/=-]{0,127}$/
const jobIdGrammar = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/
const workerIdGrammar = /^[A-Za-z0-9][A-Za-z0-9._:@/-]{0,127}$/

export const checkRequestId = (id: string): void => {
  if (typeof id !== 'string' || !requestIdGrammar.test(id)) {
    throw new InputInvalid('requestId', 'must be 1 to 128 letters, digits or . _ : @ + / = -', { limit: 128 })
  }
}

export const checkJobId = (id: string): void => {
  if (typeof id !== 'string' || !jobIdGrammar.test(id))
    throw new InputInvalid('jobId', 'must be a UUID in small letters')
}

export const checkWorkerId = (id: string): void => {
  if (typeof id !== 'string' || !workerIdGrammar.test(id)) {
    throw new InputInvalid('workerId', 'must be 1 to 128 letters, digits or . _ : @ / -', { limit: 128 })
  }
}

/** A whole number within a range; anything else names field, value and limits. */
export const checkWhole = (field: string, value: number, least: number, most: number): void => {
  if (!Number.isSafeInteger(value) || value < least || value > most) {
    throw new InputInvalid(field, `must be a whole number from ${least} to ${most}, not ${value}`, {
      limit: value < least ? least : most,
    })
  }
}

/** The wall time from which the job may run. */
export const checkSchedule = (request: EnqueueRequest, now: number): number => {
  if (request.delayMs !== undefined && request.notBefore !== undefined) {
    throw new InputInvalid('delayMs', 'cannot be given together with notBefore')
  }
  if (request.delayMs !== undefined) {
    checkWhole('delayMs', request.delayMs, 0, limits.delayMs)
    return now + request.delayMs
  }
  if (request.notBefore === undefined) return now
  checkWhole('notBefore', request.notBefore, 0, now + limits.delayMs)
  return Math.max(now, request.notBefore)
}

/** The params as the text that is stored. */
export const checkParams = (params: JobParams): string => {
  if (params?.kind === 'command') checkCommand(params)
  else if (params?.kind !== 'handler') throw new InputInvalid('params.kind', "must be 'command' or 'handler'")
  else if (typeof params.name !== 'string' || !workerIdGrammar.test(params.name)) {
    throw new InputInvalid('params.name', 'must be 1 to 128 letters, digits or . _ : @ / -', { limit: 128 })
  }
  checkJson('params', params as unknown as Json)
  const text = JSON.stringify(params)
  const bytes = Buffer.byteLength(text)
  if (bytes > limits.paramsBytes) {
    throw new InputInvalid('params', `takes ${bytes} bytes, more than the ${limits.paramsBytes} allowed`, {
      limit: limits.paramsBytes,
    })
  }
  return text
}

const checkCommand = (params: Extract<JobParams, { kind: 'command' }>): void => {
  if (!Array.isArray(params.argv) || params.argv.length === 0 || params.argv.length > limits.argv) {
    throw new InputInvalid('params.argv', `must have 1 to ${limits.argv} elements`, { limit: limits.argv })
  }
  const texts = [...params.argv, params.cwd ?? '', ...Object.entries(params.env ?? {}).flat()]
  if (!texts.every((text) => typeof text === 'string')) {
    throw new InputInvalid('params', 'arguments, directory and environment must be text')
  }
  if (texts.some((text) => text.includes('\0'))) {
    throw new InputInvalid('params', 'arguments, directory and environment must not contain a NUL character')
  }
  if (Object.keys(params.env ?? {}).some((name) => name === '' || name.includes('='))) {
    throw new InputInvalid('params.env', "names must not be empty or contain '='")
  }
}

/** Walks with a stack of its own, so that depth is a limit and not a crash. */
export const checkJson = (field: string, value: Json): void => {
  const open: { readonly value: unknown; readonly depth: number }[] = [{ value, depth: 0 }]
  for (let seen = 0; open.length > 0; seen++) {
    if (seen > limits.values) {
      throw new InputInvalid(field, `has more than ${limits.values} values`, { limit: limits.values })
    }
    const { value: at, depth } = open.pop() as (typeof open)[number]
    if (depth > limits.depth) {
      throw new InputInvalid(field, `is nested more than ${limits.depth} deep`, { limit: limits.depth })
    }
    if (at === null || typeof at === 'string' || typeof at === 'boolean') continue
    if (typeof at === 'number') {
      if (!Number.isFinite(at)) throw new InputInvalid(field, `contains ${at}, which is not a JSON number`)
    } else if (Array.isArray(at)) {
      if (at.length > limits.values) {
        throw new InputInvalid(field, `has more than ${limits.values} values`, { limit: limits.values })
      }
      for (const part of at) open.push({ value: part, depth: depth + 1 })
    } else if (typeof at === 'object' && isPlain(at)) {
      for (const [name, part] of Object.entries(at)) {
        if (name === '__proto__') throw new InputInvalid(field, "contains the name '__proto__', which is refused")
        // JSON leaves such members out, and so do we.
        if (part !== undefined) open.push({ value: part, depth: depth + 1 })
      }
    } else {
      throw new InputInvalid(field, `contains a ${typeof at}, which is not JSON`)
    }
  }
}

const isPlain = (value: object): boolean => {
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === null || prototype === Object.prototype
}

/** An error text within its limit; one that is too long keeps its beginning and says what is missing. */
export const shortenError = (error: string): string => {
  const bytes = Buffer.byteLength(error)
  if (bytes <= limits.errorBytes) return error
  const note = ` … (${bytes} bytes in all)`
  const encoded = Buffer.from(error)
  let end = limits.errorBytes - Buffer.byteLength(note)
  // Not in the middle of a character: bytes that continue one begin with the bits 10.
  while (((encoded[end] as number) & 0xc0) === 0x80) end -= 1
  return encoded.toString('utf8', 0, end) + note
}
