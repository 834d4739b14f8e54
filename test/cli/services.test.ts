import { describe, expect, test } from 'vitest'
import { run as server } from '../../src/cli/commands/server.ts'
import { run as up } from '../../src/cli/commands/up.ts'
import { run as worker } from '../../src/cli/commands/worker.ts'
import type { Service } from '../../src/cli/context.ts'
import { stopSignals } from '../../src/cli/signals.ts'
import { settle } from '../../src/sim/virtual-clock.ts'
import { AnyFault, fakeContext } from './support/fake.ts'

const fakeService = () => {
  const calls: string[] = []
  let drained: () => void = () => {}
  let fail: (error: unknown) => void = () => {}
  const service: Service = {
    addresses: ['http://127.0.0.1:7171'],
    stop: () => {
      calls.push('stop')
      return new Promise((resolve) => {
        drained = resolve
      })
    },
    stopNow: async () => void calls.push('stopNow'),
    ended: new Promise((_, reject) => {
      fail = reject
    }),
  }
  return { service, calls, drained: () => drained(), fail: (error: unknown) => fail(error) }
}

describe('up', () => {
  test('prints where it listens and how to give it work', async () => {
    const { service, drained } = fakeService()
    const context = fakeContext({ service })
    const running = up(context, {})
    while (!context.stderr.text().includes('submit')) await settle()
    expect(context.stderr.text()).toBe(
      'millrace: ready on http://127.0.0.1:7171\nmillrace: give it work with: millrace submit --follow -- echo hello\n',
    )
    context.send('SIGTERM')
    await settle()
    drained()
    expect(await running).toBe(0)
  })

  test.each(stopSignals)('L05 the first %s drains, and that is a good end', async (signal) => {
    const { service, calls, drained } = fakeService()
    const context = fakeContext({ service })
    const running = up(context, {})
    while (!context.stderr.text().includes('ready')) await settle()
    context.send(signal)
    await settle()
    expect(calls).toEqual(['stop'])
    expect(context.stderr.text()).toContain(
      `millrace: ${signal}: ending what is under way; once more to stop at once\n`,
    )
    drained()
    expect(await running).toBe(0)
    expect(calls).toEqual(['stop'])
    expect(context.signalListeners()).toBe(0)
  })

  test('L05 the second signal stops at once, gives jobs back and says by which signal', async () => {
    const { service, calls } = fakeService()
    const context = fakeContext({ service })
    const running = up(context, {})
    while (!context.stderr.text().includes('ready')) await settle()
    context.send('SIGINT')
    context.send('SIGTERM')
    expect(await running).toBe(143)
    expect(calls).toEqual(['stop', 'stopNow'])
  })

  test('L05 a signal while it starts stops it as soon as it has started', async () => {
    const { service, calls, drained } = fakeService()
    let start: (service: Service) => void = () => {}
    const starting = new Promise<Service>((resolve) => {
      start = resolve
    })
    const context = fakeContext({ backend: { serve: () => starting } })
    const running = up(context, {})
    while (context.signalListeners() === 0) await settle()
    context.send('SIGTERM')
    start(service)
    while (calls.length === 0) await settle()
    drained()
    expect(await running).toBe(0)
    expect(context.stderr.text()).not.toContain('ready')
  })

  test('a service that cannot go on ends the command with its fault, and gives jobs back', async () => {
    const { service, calls, fail } = fakeService()
    const context = fakeContext({ service })
    const running = up(context, {})
    while (!context.stderr.text().includes('ready')) await settle()
    fail(new AnyFault('HOLDER_LOST'))
    await expect(running).rejects.toMatchObject({ code: 'HOLDER_LOST' })
    expect(calls).toEqual(['stopNow'])
  })

  test('--json says that it is ready in one line', async () => {
    const { service, drained } = fakeService()
    const context = fakeContext({ service })
    const running = up(context, { json: true })
    while (context.stdout.text() === '') await settle()
    expect(JSON.parse(context.stdout.text())).toEqual({ ready: true, addresses: ['http://127.0.0.1:7171'] })
    context.send('SIGTERM')
    await settle()
    drained()
    await running
  })
})

test('server is up without workers', async () => {
  const given: unknown[] = []
  const context = fakeContext({
    backend: {
      serve: (_, how) => {
        given.push(how)
        return Promise.reject(new AnyFault('ADDRESS_UNUSABLE'))
      },
    },
  })
  await expect(server(context, { handlers: [] })).rejects.toMatchObject({ code: 'ADDRESS_UNUSABLE' })
  await expect(up(context, { handlers: ['./h.js'] })).rejects.toMatchObject({ code: 'ADDRESS_UNUSABLE' })
  expect(given).toEqual([
    { workers: false, handlers: [] },
    { workers: true, handlers: ['./h.js'] },
  ])
})

describe('worker', () => {
  test('needs a server', async () => {
    await expect(worker(fakeContext(), {})).rejects.toThrow('--server')
  })

  test('L05 drains at the first signal', async () => {
    const { service, calls, drained } = fakeService()
    const context = fakeContext({ service })
    const running = worker(context, { server: 'http://127.0.0.1:7171' })
    while (!context.stderr.text().includes('working for http://127.0.0.1:7171')) await settle()
    context.send('SIGTERM')
    await settle()
    expect(calls).toEqual(['stop'])
    drained()
    expect(await running).toBe(0)
  })
})
