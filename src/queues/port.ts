import type { Action } from '../tables/port.ts'
import type { QueueFault } from './faults.ts'

/** Which jobs go first. Best effort, and no class starves. */
export const priorities = ['high', 'normal', 'low'] as const
export type Priority = (typeof priorities)[number]

/** A hint that a job may be ready: the store is the truth. `attempt` is the job's attempt when the hint was sent. */
export interface Message {
  readonly jobId: string
  readonly queue: string
  readonly priority: Priority
  readonly attempt: number
}

export interface Outgoing {
  readonly message: Message
  /** Wall time before which nobody should receive it. Adapters that cannot wait that long deliver early. */
  readonly notBefore: number
}

/** A message in our hands until it is finished or released, or its hold passes. */
export interface Received {
  readonly queue: string
  /** Absent if the body is not one of ours: see `body`. */
  readonly message?: Message
  readonly body: string
  /** How often it was received, this time included; a lower bound. */
  readonly receives: number
  /** What the adapter needs to find it again. Nobody else looks inside. */
  readonly receipt: unknown
}

export interface ReceiveOptions {
  readonly max: number
  /** How long to wait for the first message. */
  readonly waitMs: number
  readonly signal?: AbortSignal
}

/** Named channels of messages. Delivers at least once, in order of priority as far as it can. */
export interface Queue {
  /** Undefined for each message that was sent, a fault for each that was not (or perhaps not). */
  send(outgoing: readonly Outgoing[]): Promise<readonly (QueueFault | undefined)[]>
  /**
   * At least one message as soon as there is one, at most `max`; none after `waitMs` or when aborted. What it gives is hidden
   * from other receivers for the adapter's hold time.
   */
  receive(queue: string, options: ReceiveOptions): Promise<readonly Received[]>
  /** Keeps the messages hidden for `ms` from now. A hold that has passed is ignored. */
  extend(received: readonly Received[], ms: number): Promise<void>
  /** Removes the messages for good. One whose hold has passed is ignored: it comes again and is dropped then. */
  finish(received: readonly Received[]): Promise<void>
  /** Gives the messages back, to be received after `delayMs`. A hold that has passed is ignored. */
  release(received: readonly Received[], delayMs: number): Promise<void>
  /** Keeps body and reason where a person finds them, then removes the message. */
  deadLetter(received: Received, reason: string): Promise<void>
  /** What a person finds there, oldest first. */
  deadLetters(queue: string, limit: number): Promise<readonly DeadLetter[]>
  /** Only where the queue shares its storage with the tables. */
  readonly within?: Within
  /** Ends every receive with nothing; later calls fail. */
  close(): Promise<void>
}

export interface DeadLetter {
  readonly body: string
  readonly reason: string
}

/** Sending and finishing as part of the store's own transaction: then there is nothing to repair afterwards. */
export interface Within {
  send(outgoing: Outgoing): Action
  finish(received: Received): Action
  /** As `finish`, for a message that nobody received: the one that was sent with these very words. */
  withdraw(outgoing: Outgoing): Action
}
