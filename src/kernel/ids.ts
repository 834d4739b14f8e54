import type { Clock } from './clock.ts'
import type { Random } from './random.ts'

export interface Ids {
  /** A UUIDv7: sorts by the time it was made; later ids of one maker are always greater. */
  next(): string
}

const counterMax = 0xfff

/** Ids that sort by time (RFC 9562, version 7), with the 12 bits after the time used as a counter within a millisecond. */
export const createIds = (clock: Pick<Clock, 'now'>, random: Random): Ids => {
  let lastMs = 0
  let counter = 0
  return {
    next: () => {
      const now = clock.now()
      if (now > lastMs) {
        lastMs = now
        counter = 0
      } else if (counter < counterMax) {
        counter += 1
      } else {
        // More than 4,096 ids in a millisecond, or the wall clock went back: run ahead rather than out of order.
        lastMs += 1
        counter = 0
      }
      return format(lastMs, counter, random.bytes(8))
    },
  }
}

const hex = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'))

const format = (ms: number, counter: number, tail: Uint8Array): string => {
  const time = ms.toString(16).padStart(12, '0')
  const middle = (0x7000 | counter).toString(16)
  const at = (index: number) => hex[tail[index] as number] as string
  const variant = hex[((tail[0] as number) & 0x3f) | 0x80] as string
  return `${time.slice(0, 8)}-${time.slice(8)}-${middle}-${variant}${at(1)}-${at(2)}${at(3)}${at(4)}${at(5)}${at(6)}${at(7)}`
}
