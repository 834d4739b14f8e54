// What `up`, `server` and `worker` have in common: they run until they are told to stop.

import type { CliContext, Service } from './context.ts'
import { exitCodeOfSignal, exitCodes } from './exit-codes.ts'
import { createLadder } from './signals.ts'

/** The first signal drains, the second one stops at once and gives jobs back (L05). */
export const serveUntilStopped = async (
  context: CliContext,
  start: () => Promise<Service>,
  ready: (service: Service) => Promise<void>,
  say: (text: string) => Promise<void>,
): Promise<number> => {
  let service: Service | undefined
  let stopping: Promise<void> | undefined
  let asked: () => void = () => {}
  const stopAsked = new Promise<void>((resolve) => {
    asked = resolve
  })
  const ladder = createLadder(context.signals, (signal) => {
    void say(`${signal}: ending what is under way; once more to stop at once`)
    asked()
  })
  try {
    service = await start()
    if (ladder.received === undefined) await ready(service)
    // A service that cannot go on says so by rejecting; that ends us with its failure.
    await Promise.race([stopAsked, service.ended])
    stopping = service.stop()
    const insisted = await Promise.race([stopping, ladder.insisted])
    if (insisted === undefined) return exitCodes.ok
    stopping.catch(() => {})
    await service.stopNow()
    return exitCodeOfSignal(insisted)
  } catch (error) {
    await service?.stopNow().catch(() => {})
    throw error
  } finally {
    ladder.release()
  }
}
