import type { Clock } from '../kernel/clock.ts'

/** Calls `onSilence` when one wait takes longer than `silenceMs`. One timer for all waits: they may be very many. */
export interface Watchdog {
  waiting(): void
  heard(): void
  stop(): void
}

export const createWatchdog = (clock: Clock, silenceMs: number, onSilence: () => void): Watchdog => {
  let since: number | undefined
  const look = () => {
    const quietMs = since === undefined ? 0 : clock.monotonic() - since
    if (quietMs >= silenceMs) onSilence()
    else timer = clock.setTimeout(look, silenceMs - quietMs)
  }
  let timer = clock.setTimeout(look, silenceMs)
  return {
    waiting: () => {
      since = clock.monotonic()
    },
    heard: () => {
      since = undefined
    },
    stop: () => clock.clearTimeout(timer),
  }
}
