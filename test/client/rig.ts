import { type ConnectRouter, createRouterTransport } from '@connectrpc/connect'
import { type ClientOptions, createClientOver, createRemoteServiceOver } from '../../src/client/connect.ts'
import type { Wire } from '../../src/client/transport.ts'
import { createSeededRandom } from '../../src/sim/seeded-random.ts'
import { createVirtualClock, settle, type VirtualClock } from '../../src/sim/virtual-clock.ts'

/** A server in this process, without a network in between. */
export const inMemory = (routes: (router: ConnectRouter) => void): Wire => ({
  transport: createRouterTransport(routes),
  address: 'memory',
  close: () => {},
})

/** A client of a server in this process, in virtual time. */
export const createRig = (routes: (router: ConnectRouter) => void, options: ClientOptions = {}, seed = 1) => {
  const clock = createVirtualClock()
  const deps = { clock, random: createSeededRandom(seed), wire: inMemory(routes) }
  return {
    clock,
    client: createClientOver(deps, options),
    service: createRemoteServiceOver(deps, options),
    run: <Result>(work: Promise<Result>) => runToEnd(clock, work),
  }
}

/** Runs a promise to its end while virtual time passes. */
const runToEnd = async <Result>(clock: VirtualClock, work: Promise<Result>): Promise<Result> => {
  let isSettled = false
  const done = work.finally(() => {
    isSettled = true
  })
  done.catch(() => {})
  for (let rounds = 0; !isSettled && rounds < 100_000; rounds++) {
    // Twice: a stream in this process hands a message on in more than one turn.
    await settle()
    await settle()
    if (!isSettled) clock.step()
  }
  return done
}

export const collect = async <Value>(values: AsyncIterable<Value>): Promise<Value[]> => {
  const all: Value[] = []
  for await (const value of values) all.push(value)
  return all
}
