// Numbers at the edge. Both sides of it are checked: what is no safe integer, no time or no known name is refused by field.

import { create } from '@bufbuild/protobuf'
import { type Timestamp, TimestampSchema } from '@bufbuild/protobuf/wkt'
import { InputInvalid } from '../jobs/faults.ts'

/** An int64 that a number can hold exactly. */
export const toNumber = (field: string, value: bigint, least = 0): number => {
  if (value < BigInt(least) || value > BigInt(Number.MAX_SAFE_INTEGER)) {
    throw new InputInvalid(field, `must be from ${least} to ${Number.MAX_SAFE_INTEGER}, not ${value}`, {
      limit: value < BigInt(least) ? least : Number.MAX_SAFE_INTEGER,
    })
  }
  return Number(value)
}

const nanosPerMs = 1_000_000
const secondsMax = 253_402_300_799n

/** Wall time in milliseconds, rounded down; undefined if there is none. */
export const toMs = (field: string, at: Timestamp | undefined): number | undefined => {
  if (at === undefined) return undefined
  const { seconds, nanos } = at
  if (seconds < 0n || seconds > secondsMax || nanos < 0 || nanos > 999_999_999) {
    throw new InputInvalid(field, 'must be a time from 1970 to 9999')
  }
  return Number(seconds) * 1_000 + Math.floor(nanos / nanosPerMs)
}

export const toTimestamp = (ms: number): Timestamp => {
  const seconds = Math.floor(ms / 1_000)
  return create(TimestampSchema, { seconds: BigInt(seconds), nanos: (ms - seconds * 1_000) * nanosPerMs })
}

/** The name of an enum's number, which counts from 1; undefined for 0, which stands for "not given". */
export const toName = <Name extends string>(
  field: string,
  names: readonly Name[],
  number: number,
): Name | undefined => {
  if (number === 0) return undefined
  const name = names[number - 1]
  if (name === undefined) throw new InputInvalid(field, `must be from 0 to ${names.length}, not ${number}`)
  return name
}
