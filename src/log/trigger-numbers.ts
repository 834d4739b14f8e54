import type { Trigger } from '../../machines/batch-buffer.ts'

/** The triggers of the batcher as the wire contract numbers them (FlushTrigger). */
export const triggerNumbers: Readonly<Record<Trigger, number>> = {
  count: 1,
  bytes: 2,
  age: 3,
  barrier: 4,
  asked: 5,
  drain: 6,
}
