// The log of an attempt as data. The messages behind it are in api/millrace/v1/event.proto.

/** What stored events say; the numbers are those of the wire contract. */
export const eventTypes = {
  output: 1,
  outputBatch: 2,
  processStart: 3,
  processEnd: 4,
  processError: 5,
  progress: 6,
  outputCut: 7,
} as const
export type EventType = (typeof eventTypes)[keyof typeof eventTypes]

export const streams = { stdout: 1, stderr: 2 } as const
export type StreamName = keyof typeof streams

/** How the payload of an item is to be read. */
export const encodings = { plain: 0, deflate: 1 } as const
export type Encoding = (typeof encodings)[keyof typeof encodings]

/** One item of a log, as it is stored and as followers get it: a single event, or consecutive outputs as one batch. */
export interface StoredItem {
  /** Of the first event in it. From 1 in each attempt. */
  readonly sequence: number
  /** Of the last event in it. */
  readonly endSequence: number
  /** Wall time of the first event; never goes back within a log. */
  readonly timestamp: number
  readonly type: EventType
  /** A JobEvent, encoded. */
  readonly payload: Uint8Array
  readonly encoding: Encoding
  /** CRC-32 of the payload as it stands here. */
  readonly crc: number
}
