import { describe, expect, test } from 'vitest'
import { ClaimLost, StoreBusy } from '../../src/jobs/faults.ts'
import type { Hold } from '../../src/jobs/job.ts'
import { sleep } from '../../src/kernel/clock.ts'
import { stubborn } from './sim-exec.ts'
import { createWorld, run, type World } from './support.ts'

const lease = 60_000

/** Sweeps now and again while time passes, as a sweeper would. */
const sweepFor = async (world: World, ms: number): Promise<void> => {
  const other = world.node('sweeper')
  for (let passed = 0; passed < ms; passed += 10_000) {
    await world.clock.advance(10_000)
    await other.store.sweep.run()
  }
}
const busy = () => Promise.reject(new StoreBusy('busy'))

describe('leases of a worker', () => {
  test('B09 a heartbeat that fails once is sent again at once', async () => {
    const sent: number[] = []
    const world: World = createWorld({
      wrap: (service) => ({
        ...service,
        renew: (hold) => {
          sent.push(world.clock.monotonic())
          return sent.length === 1 ? busy() : service.renew(hold)
        },
      }),
    })
    await world.command()
    world.worker.start()
    await world.clock.advance(50_000)
    expect(sent).toEqual([20_000, 20_000, 40_000])
    expect(world.process().signals).toEqual([])
    await world.worker.stopNow()
  })

  test('B09 when heartbeats always fail the child is told to stop, and killed before the lease ends; nothing is settled', async () => {
    const world = createWorld({ wrap: (service) => ({ ...service, renew: busy }) })
    world.exec.behaviour = stubborn
    const jobId = await world.command()
    world.worker.start()
    await world.clock.advance(lease)
    expect(world.process().signals[0]).toEqual({ signal: 'SIGTERM', at: lease - 1_000 - 10_000 })
    expect(world.process().signals[1]).toEqual({ signal: 'SIGKILL', at: lease - 1_000 })
    expect(world.process().isAlive).toBe(false)
    expect(world.calls).toMatchObject({ settle: 0, release: 0 })
    expect(world.worker.busy()).toBe(0)
    expect(await world.job(jobId)).toMatchObject({ state: 'RUNNING', attempt: 1 })
    // Retried ever more slowly, not in a loop.
    expect(world.calls.renew).toBeLessThan(15)
    await world.worker.stop()
  })

  test('B09 a lost attempt leaves nothing behind that still tries to write', async () => {
    const world = createWorld({ wrap: (service) => ({ ...service, renew: busy, publish: busy }) })
    await world.command()
    world.worker.start()
    await world.clock.advance(lease)
    const tries = world.calls.publish
    await world.clock.advance(lease)
    expect(world.calls.publish).toBeLessThanOrEqual(tries + 1)
    await world.worker.stop()
    expect(world.clock.timers).toBe(0)
  })

  test('B09 a heartbeat that never answers is as good as one that fails', async () => {
    const world = createWorld({ wrap: (service) => ({ ...service, renew: () => new Promise(() => {}) }) })
    await world.command()
    world.worker.start()
    await world.clock.advance(lease)
    expect(world.process().isAlive).toBe(false)
    expect(world.calls.settle).toBe(0)
    await world.worker.stop()
  })

  test('the lease counts from when an acknowledged heartbeat was sent, however late the answer came', async () => {
    const world: World = createWorld({
      wrap: (service) => ({
        ...service,
        renew: (hold) =>
          world.clock.monotonic() > 20_000
            ? busy()
            : new Promise((resolve) => {
                world.clock.setTimeout(() => resolve(service.renew(hold)), 15_000)
              }),
      }),
    })
    world.exec.behaviour = stubborn
    await world.command()
    world.worker.start()
    await world.clock.advance(90_000)
    expect(world.process().signals[1]).toEqual({ signal: 'SIGKILL', at: 20_000 + lease - 1_000 })
    await world.worker.stop()
  })

  test('C01 a worker that was paused past its lease kills its child first, and changes nothing', async () => {
    let skew = 0
    const world = createWorld({ clock: (clock) => ({ ...clock, monotonic: () => clock.monotonic() + skew }) })
    const jobId = await world.command()
    world.worker.start()
    await world.breathe()
    skew += 10 * lease
    await world.clock.advance(20_000)
    expect(world.process().signals).toMatchObject([{ signal: 'SIGKILL' }, { signal: 'SIGKILL' }])
    expect(world.calls).toMatchObject({ settle: 0, release: 0, renew: 0 })
    expect(await world.job(jobId)).toMatchObject({ state: 'RUNNING', attempt: 1 })
    expect(world.worker.busy()).toBe(0)
    await world.worker.stop()
  })

  test.each(['renew', 'publish'] as const)(
    'C01 a worker that is fenced when it wants to %s kills its child at once and settles nothing',
    async (verb) => {
      const world = createWorld({
        wrap: (service) => ({
          ...service,
          [verb]: (hold: { jobId: string; attempt: number }) => {
            if (verb === 'publish' && world.clock.monotonic() < 10) return service.publish(hold as never, [])
            return Promise.reject(new ClaimLost(hold.jobId, hold.attempt))
          },
        }),
      })
      world.exec.behaviour = stubborn
      const jobId = await world.command()
      world.worker.start()
      await world.clock.advance(19_999)
      world.process().write('stdout', 'nobody will see this\n')
      await world.clock.advance(10)
      expect(world.process().signals[0]).toMatchObject({ signal: 'SIGKILL' })
      expect(world.process().isAlive).toBe(false)
      expect(world.calls).toMatchObject({ settle: 0, release: 0 })
      expect(world.worker.busy()).toBe(0)
      expect(await world.job(jobId)).toMatchObject({ state: 'RUNNING' })
      await world.worker.stop()
    },
  )

  test('C02 when another worker has taken the job, its attempt is the one that counts', async () => {
    let isCut = false
    const cut = <T>(call: () => Promise<T>): Promise<T> => (isCut ? busy() : call())
    const world = createWorld({
      wrap: (service) => ({
        ...service,
        renew: (hold) => cut(() => service.renew(hold)),
        publish: (hold, items) => cut(() => service.publish(hold, items)),
        settle: (...args) => cut(() => service.settle(...args)),
        claim: (request) => cut(() => service.claim(request)),
      }),
    })
    const jobId = await world.command()
    world.worker.start()
    await world.breathe()
    isCut = true
    await sweepFor(world, 3 * lease)
    expect(world.process().isAlive).toBe(false)
    isCut = false
    await world.clock.advance(40_000)
    expect(world.exec.processes).toHaveLength(2)
    world.process().exit({ code: 0 })
    await world.breathe()
    expect(await world.job(jobId)).toMatchObject({ state: 'COMPLETED', attempt: 2, lostAttempts: 1 })
    await world.worker.stop()
  })

  test('C09 an end that could not be stored for longer than a lease is accepted, as nobody has expired the attempt', async () => {
    let isCut = false
    const cut = <T>(call: () => Promise<T>): Promise<T> => (isCut ? busy() : call())
    const world = createWorld({
      wrap: (service) => ({
        ...service,
        renew: (hold) => cut(() => service.renew(hold)),
        settle: (...args) => cut(() => service.settle(...args)),
      }),
    })
    const jobId = await world.command()
    world.worker.start()
    await world.breathe()
    isCut = true
    world.process().exit({ code: 0 })
    await world.clock.advance(2 * lease)
    const tries = world.calls.settle
    expect(tries).toBeGreaterThan(5)
    expect(tries).toBeLessThan(40)
    isCut = false
    await world.clock.advance(11_000)
    expect(await world.job(jobId)).toMatchObject({ state: 'COMPLETED', attempt: 1 })
    await world.worker.stop()
  })

  test('C09 after it was expired the end is refused, and the attempt is over', async () => {
    let isCut = false
    const world = createWorld({
      wrap: (service) => ({
        ...service,
        renew: (hold) => (isCut ? busy() : service.renew(hold)),
        settle: (...args) => (isCut ? busy() : service.settle(...args)),
        claim: (request) => (isCut ? busy() : service.claim(request)),
      }),
    })
    const jobId = await world.command()
    world.worker.start()
    await world.breathe()
    isCut = true
    world.process().exit({ code: 0 })
    await sweepFor(world, 3 * lease)
    expect(await world.job(jobId)).toMatchObject({ state: 'SCHEDULED', attempt: 1 })
    isCut = false
    await world.clock.advance(11_000)
    await world.clock.advance(30_000)
    expect(await world.job(jobId)).toMatchObject({ state: 'RUNNING', attempt: 2 })
    expect(world.worker.busy()).toBe(1)
    await world.worker.stopNow()
  })

  test('C11 the job of a worker that died without a word is run by another one', async () => {
    let isDead = false
    const dying =
      <Result>(call: (hold: Hold, ...rest: never[]) => Promise<Result>) =>
      (hold: Hold, ...rest: unknown[]): Promise<Result> =>
        isDead && hold.attempt === 1 ? new Promise(() => {}) : call(hold, ...(rest as never[]))
    const world = createWorld({
      wrap: (service) => ({
        ...service,
        renew: dying(service.renew),
        settle: dying(service.settle),
        publish: dying(service.publish),
      }),
    })
    const jobId = await world.command()
    world.worker.start()
    await world.breathe()
    isDead = true
    await sweepFor(world, 2 * lease + 20_000)
    expect(world.exec.processes).toHaveLength(2)
    world.process().exit({ code: 0 })
    await world.breathe()
    expect(await world.job(jobId)).toMatchObject({ state: 'COMPLETED', attempt: 2, lostAttempts: 1 })
    await world.worker.stopNow()
  })

  test('B14 claims that were given back before they began burn nothing', async () => {
    const world = createWorld({ worker: { slots: 1, drainGraceMs: 0 } })
    const jobId = await world.command({ retry: { maxAttempts: 1 } })
    for (let times = 1; times <= 5; times++) {
      const worker = world.another()
      worker.start()
      await world.breathe()
      await world.run(worker.stopNow())
    }
    expect(await world.job(jobId)).toMatchObject({ state: 'SCHEDULED', attempt: 5, failedAttempts: 0, lostAttempts: 0 })
    world.worker.start()
    await world.breathe()
    world.process().exit({ code: 0 })
    await world.breathe()
    expect(await world.job(jobId)).toMatchObject({ state: 'COMPLETED', attempt: 6 })
    await world.worker.stop()
  })

  test('a claim whose answer took longer than a heartbeat is renewed at once', async () => {
    const world: World = createWorld({
      wrap: (service) => ({
        ...service,
        claim: async (request) => {
          const claims = await service.claim({ ...request, waitMs: 0 })
          await new Promise<void>((resolve) => void world.clock.setTimeout(resolve, 25_000))
          return claims
        },
      }),
    })
    await world.command()
    world.worker.start()
    await world.clock.advance(25_001)
    expect(world.exec.processes).toHaveLength(1)
    expect(world.calls.renew).toBe(1)
    await world.clock.advance(19_000)
    expect(world.calls.renew).toBe(1)
    const stopped = world.worker.stopNow()
    await world.clock.advance(30_000)
    await stopped
  })

  test('a settle of a quick handler that fails for now is tried again with the same bytes, and kept alive meanwhile', async () => {
    let isCut = true
    const ends = new Set<string>()
    const world: World = createWorld({
      handlers: { work: () => 'quick' },
      wrap: (service) => ({
        ...service,
        settle: (hold, outcome, closing) => {
          ends.add(Buffer.from(closing.end.payload).toString('hex') + closing.end.timestamp)
          if (!isCut) return service.settle(hold, outcome, closing)
          return sleep(world.clock, 10).then(busy)
        },
      }),
    })
    const jobId = await world.submit(run('work'))
    world.worker.start()
    await world.clock.advance(45_000)
    expect(world.calls.renew).toBe(2)
    isCut = false
    await world.clock.advance(11_000)
    expect(await world.job(jobId)).toMatchObject({ state: 'COMPLETED', result: 'quick', attempt: 1 })
    expect(ends.size).toBe(1)
    expect(world.worker.busy()).toBe(0)
    await world.worker.stop()
  })

  test('a settle that took effect although its answer was lost is recognised', async () => {
    let isFirst = true
    const world = createWorld({
      handlers: { work: () => 'quick' },
      wrap: (service) => ({
        ...service,
        settle: async (...args) => {
          const settled = await service.settle(...args)
          if (!isFirst) return settled
          isFirst = false
          throw new StoreBusy('the answer is lost')
        },
      }),
    })
    const jobId = await world.submit(run('work'))
    world.worker.start()
    await world.clock.advance(1_000)
    expect(await world.job(jobId)).toMatchObject({ state: 'COMPLETED', result: 'quick' })
    expect(world.warnings()).toEqual([])
    await world.worker.stop()
  })
})
