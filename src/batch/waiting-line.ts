/** A producer that waits for room. */
export interface Waiter {
  /** Takes the room it needs, or answers false while there is none. */
  enter(): boolean
  refuse(cause: unknown): void
}

/** Producers that wait for room, first come, first served (law B4). Its length is that of the producers outside. */
export interface WaitingLine {
  join(waiter: Waiter): void
  /** Lets in as many as there is room for; nobody overtakes the first who has to go on waiting. */
  letIn(): void
  /** Sends everybody away. */
  refuse(cause: unknown): void
  isEmpty(): boolean
}

export const createWaitingLine = (): WaitingLine => {
  // A Set keeps the order of joining and lets the first one go without moving the others.
  const waiters = new Set<Waiter>()

  const enters = (waiter: Waiter): boolean => {
    try {
      return waiter.enter()
    } catch (cause) {
      // A hook threw over this one item: that is its producer's answer, and no reason to stop the others.
      waiter.refuse(cause)
      return true
    }
  }

  return {
    join: (waiter) => {
      waiters.add(waiter)
    },
    letIn: () => {
      for (const waiter of waiters) {
        if (!enters(waiter)) return
        waiters.delete(waiter)
      }
    },
    refuse: (cause) => {
      for (const waiter of waiters) waiter.refuse(cause)
      waiters.clear()
    },
    isEmpty: () => waiters.size === 0,
  }
}
