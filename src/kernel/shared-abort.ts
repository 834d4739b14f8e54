import { setMaxListeners } from 'node:events'

/** An abort that any number of others wait for at a time. Without this, Node takes the eleventh for a leak and says so aloud. */
export const createSharedAbort = (): AbortController => {
  const controller = new AbortController()
  setMaxListeners(0, controller.signal)
  return controller
}
