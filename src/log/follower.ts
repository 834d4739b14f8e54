import type { StoredItem } from './event.ts'

/** What a stream of a log says that nobody stored. */
export type Marker =
  | { readonly kind: 'attemptEnded'; readonly lastSequence: number; readonly complete: boolean }
  /** Ends the stream. */
  | { readonly kind: 'jobEnded'; readonly state: string; readonly result: unknown; readonly error: string | undefined }
  | { readonly kind: 'missing'; readonly from: number; readonly to: number }
  | { readonly kind: 'trimmed'; readonly before: number }
  | { readonly kind: 'damaged'; readonly from: number; readonly to: number; readonly reason: string }
  | { readonly kind: 'keepAlive' }

/** A stored item, whole, or a marker. An item may begin before the sequence that was asked for: unpacking filters. */
export type Entry =
  | { readonly attempt: number; readonly item: StoredItem }
  | { readonly attempt: number; readonly marker: Marker }

export interface FollowRequest {
  readonly jobId: string
  /** The job's current attempt if absent, or the first one to come. */
  readonly attempt?: number
  /** The first sequence wanted; 0 and 1 are the beginning. Holds for the first attempt of the stream only. */
  readonly fromSequence?: number
  /** Wall time; only what happened from then on. */
  readonly fromTimestamp?: number
  /** Ends with what is stored now instead of waiting for more. */
  readonly noFollow?: boolean
  readonly signal?: AbortSignal
}

/** Pulled by its reader: a slow one reads later, and nobody waits for it. */
export interface Follower {
  follow(request: FollowRequest): AsyncGenerator<Entry, void, void>
}
