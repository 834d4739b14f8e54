import type { Clock } from '../../kernel/clock.ts'

/** So many calls at once and no more. Who waits here has sent nothing; who waits for a socket could not be sure of that. */
export interface Gate {
  /** False if no place came free within `ms`. */
  enter(ms: number): Promise<boolean>
  leave(): void
}

export const createGate = (clock: Clock, places: number): Gate => {
  let free = places
  const waiting = new Set<() => void>()
  return {
    enter: async (ms) => {
      if (ms <= 0) return false
      if (free > 0) {
        free -= 1
        return true
      }
      return new Promise((resolve) => {
        const enter = () => {
          clock.clearTimeout(timer)
          resolve(true)
        }
        const timer = clock.setTimeout(() => {
          waiting.delete(enter)
          resolve(false)
        }, ms)
        waiting.add(enter)
      })
    },
    leave: () => {
      const [next] = waiting
      if (!next) {
        free += 1
        return
      }
      waiting.delete(next)
      next()
    },
  }
}
