import { setTimeout as pause } from 'node:timers/promises'

/** For what nobody tells us about, such as the death of somebody else's process: looks until it is so, or the test is over. */
export const eventually = async <T>(look: () => T | undefined | false | Promise<T | undefined | false>): Promise<T> => {
  for (;;) {
    const found = await look()
    if (found !== undefined && found !== false) return found
    await pause(20)
  }
}
