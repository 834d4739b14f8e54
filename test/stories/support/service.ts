import type { Place, Started, StartOptions } from './place.ts'

/** A server that has said where it listens. */
export interface Service extends Started {
  readonly address: string
}

/** `up` or `server` on a free port, once it is ready. */
export const startService = async (
  place: Place,
  command: 'up' | 'server',
  args: readonly string[] = [],
  options?: StartOptions,
): Promise<Service> => {
  const started = place.start([command, '--port', '0', '--json', ...args], options)
  const [line = ''] = await Promise.race([
    started.stdout.until(/^.*\n/),
    started.ended.then(() => Promise.reject(new Error(`${command} ended: ${started.stderr.text()}`))),
  ])
  const { addresses } = JSON.parse(line) as { addresses: readonly string[] }
  return { ...started, address: addresses.find((address) => address.startsWith('http')) ?? '' }
}

/** Workers for a server, once they work. */
export const startWorkers = async (place: Place, { address }: Service, args: readonly string[] = []) => {
  const started = place.start(['worker', '--server', address, ...args])
  await started.stderr.until(/working for/)
  return started
}
