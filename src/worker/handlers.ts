import type { Json } from '../jobs/job.ts'
import type { Answer } from './outcome.ts'

/** What a handler is given besides its input. */
export interface HandlerContext {
  readonly jobId: string
  /** Rises with every attempt: what the handler does outside can be fenced with it. */
  readonly attempt: number
  readonly input: Json
  /** Aborted when the handler is to stop: it was cancelled, took too long, lost its job, or the worker stops. */
  readonly signal: AbortSignal
  /** One line of output. Whoever waits for what it gives back goes at the pace of the log. */
  log(text: string): Promise<void> | undefined
  /** How far the job is, from 0 to 1. */
  progress(fraction: number, text?: string): void
}

/** Work in this process. What it returns is its outcome; a throw is a failed attempt. */
export type Handler = (ctx: HandlerContext, input: Json) => HandlerResult | Promise<HandlerResult>

// `void`, so that a handler which returns nothing is one.
// biome-ignore lint/suspicious/noConfusingVoidType: see above.
export type HandlerResult = Answer | Json | undefined | void

export interface Handlers {
  get(name: string): Handler | undefined
  names(): readonly string[]
}

/** Handlers by name. */
export const createHandlers = (given: Readonly<Record<string, Handler>> = {}): Handlers => {
  const byName = new Map(Object.entries(given))
  return { get: (name) => byName.get(name), names: () => [...byName.keys()].sort() }
}

/** For a person who asked for a handler that is not there. */
export const unknownHandler = (handlers: Handlers, name: string): string => {
  const names = handlers.names()
  const shown = names.slice(0, namesShown).map((one) => `'${one}'`)
  const rest = names.length > namesShown ? ` and ${names.length - namesShown} more` : ''
  const known = names.length === 0 ? 'this worker has none' : `this worker has ${shown.join(', ')}${rest}`
  return `there is no handler '${name}': ${known}`
}

const namesShown = 20
