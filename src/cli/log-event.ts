import type { StreamName } from '../log/event.ts'

/** What every event carries. Sequences are from 1 in each attempt; 0 for what is only sent and never stored. */
interface Place {
  readonly attempt: number
  readonly sequence: number
  /** Wall time in milliseconds; 0 if the event has none. */
  readonly timestamp: number
}

export interface OutputEvent extends Place {
  readonly kind: 'output'
  readonly stream: StreamName
  /** A line with its line break or a part of one; where chunks were asked for, everything up to `endSequence`. */
  readonly bytes: Uint8Array
  readonly endSequence: number
}

/** An entry of a job's log as the command line shows it. What was batched arrives unpacked. */
export type LogEvent =
  | OutputEvent
  | (Place & { readonly kind: 'processStart'; readonly workerId: string; readonly pid?: number | undefined })
  | (Place & {
      readonly kind: 'processEnd'
      readonly exitCode?: number | undefined
      readonly signal?: string | undefined
      readonly error?: string | undefined
    })
  | (Place & { readonly kind: 'processError'; readonly message: string })
  | (Place & {
      readonly kind: 'progress'
      readonly fraction?: number | undefined
      readonly text?: string | undefined
      readonly data?: unknown
    })
  | (Place & {
      readonly kind: 'outputCut'
      readonly stream?: StreamName | undefined
      readonly bytes: number
      readonly reason: string
    })
  | (Place & { readonly kind: 'attemptEnded'; readonly lastSequence: number; readonly complete: boolean })
  /** Ends the stream. */
  | (Place & {
      readonly kind: 'jobEnded'
      readonly state: string
      readonly result?: unknown
      readonly error?: string | undefined
    })
  | (Place & { readonly kind: 'missing'; readonly from: number; readonly to: number })
  | (Place & { readonly kind: 'trimmed'; readonly before: number })
  | (Place & { readonly kind: 'damaged'; readonly from: number; readonly to: number; readonly reason: string })

export type LogEventKind = LogEvent['kind']

/** Where a reader goes on that has seen this event. */
export const lastSequenceOf = (event: LogEvent): number =>
  event.kind === 'output' ? event.endSequence : event.sequence

/** The words of `--filter`, and which events each of them lets through. What says how the stream goes on always passes. */
export const filterWords = {
  output: (event: LogEvent) => event.kind === 'output' || event.kind === 'outputCut',
  stdout: (event: LogEvent) => event.kind === 'output' && event.stream === 'stdout',
  stderr: (event: LogEvent) => event.kind === 'output' && event.stream === 'stderr',
  start: (event: LogEvent) => event.kind === 'processStart',
  end: (event: LogEvent) => event.kind === 'processEnd',
  error: (event: LogEvent) => event.kind === 'processError',
  progress: (event: LogEvent) => event.kind === 'progress',
} as const
export type FilterWord = keyof typeof filterWords

const alwaysShown: ReadonlySet<LogEventKind> = new Set(['attemptEnded', 'jobEnded', 'missing', 'trimmed', 'damaged'])

export const passes = (event: LogEvent, filter: readonly FilterWord[]): boolean =>
  filter.length === 0 || alwaysShown.has(event.kind) || filter.some((word) => filterWords[word](event))
