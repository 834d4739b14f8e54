import { create, type MessageInitShape, toBinary } from '@bufbuild/protobuf'
import { timestampFromMs } from '@bufbuild/protobuf/wkt'
import { JobEventSchema } from '../../api/gen/millrace/v1/event_pb.js'
import type { EndInfo, ProgressInfo, StartInfo } from './attempt-log.ts'
import { type EventType, eventTypes, type StreamName, streams } from './event.ts'

// Events that are stored alone. They are few, so the generated code encodes them.

/** An event that has no place in its log yet. */
export interface SingleEvent {
  readonly type: EventType
  readonly data: NonNullable<MessageInitShape<typeof JobEventSchema>['data']>
}

export const encodeSingle = ({ type, data }: SingleEvent, sequence: number, timestamp: number): Uint8Array => {
  const event = { sequence: BigInt(sequence), timestamp: timestampFromMs(timestamp), type: type as number, data }
  return toBinary(JobEventSchema, create(JobEventSchema, event))
}

export const processStart = (info: StartInfo): SingleEvent => ({
  type: eventTypes.processStart,
  data: { case: 'processStart', value: { ...info, argv: shortArgv(info.argv ?? []) } },
})

export const processError = (message: string): SingleEvent => ({
  type: eventTypes.processError,
  data: { case: 'processError', value: { message: shortText(message) } },
})

export const progress = ({ fraction, text }: ProgressInfo): SingleEvent => {
  const known = fraction === undefined ? {} : { fraction }
  return {
    type: eventTypes.progress,
    data: { case: 'progress', value: { ...known, text: shortText(text ?? '') } },
  }
}

export const outputCut = (stream: StreamName, bytes: number, reason: string): SingleEvent => ({
  type: eventTypes.outputCut,
  data: { case: 'outputCut', value: { stream: streams[stream], bytes: BigInt(bytes), reason: shortText(reason) } },
})

/** What a stream came to. */
export interface StreamTotal {
  readonly stream: number
  readonly bytes: number
  readonly outputs: number
  readonly sha256: Uint8Array
}

export const processEnd = (end: EndInfo, totals: readonly StreamTotal[], startedAt: number): SingleEvent => {
  const code = end.exitCode === undefined ? {} : { exitCode: end.exitCode }
  return {
    type: eventTypes.processEnd,
    data: {
      case: 'processEnd',
      value: {
        ...code,
        signal: end.signal ?? '',
        error: shortText(end.error ?? ''),
        totals: totals.map(({ stream, bytes, outputs, sha256 }) => ({
          stream,
          bytes: BigInt(bytes),
          outputs: BigInt(outputs),
          sha256,
        })),
        startedAt: timestampFromMs(startedAt),
      },
    },
  }
}

/** An event must fit into an item, whatever somebody puts into it. */
const textMax = 8_192
const argvMax = 64 * 1_024

const shortText = (text: string): string => wellFormed(text.length > textMax ? `${text.slice(0, textMax)}…` : text)

const shortArgv = (argv: readonly string[]): string[] => {
  let left = argvMax
  const kept: string[] = []
  for (const argument of argv) {
    if (argument.length > left) return [...kept, wellFormed(`${argument.slice(0, left)}…`), '…']
    kept.push(wellFormed(argument))
    left -= argument.length + 1
  }
  return kept
}

/** Half a character, as a cut may leave it, is no text that protobuf takes. */
const wellFormed = (text: string): string => Buffer.from(text).toString()
