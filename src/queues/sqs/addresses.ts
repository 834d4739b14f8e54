import { QueueRefused } from '../faults.ts'
import type { Priority } from '../port.ts'

/** The queues of the service that together are one of ours. */
export type Part = Priority | 'dead'
export type QueueUrls = Readonly<Record<Part, string>>

export interface AddressOptions {
  /** Queues whose addresses are known. */
  readonly queues?: Readonly<Record<string, QueueUrls>>
  /** All others are looked up by name: `<prefix><queue>`, with `-high`, `-low` and `-dead` beside it. */
  readonly prefix?: string
}

const suffixes: Readonly<Record<Part, string>> = { high: '-high', normal: '', low: '-low', dead: '-dead' }

/** The service's name of one part of a queue. A name that could be taken for another queue's part is refused. */
export const nameOf = (prefix: string, queue: string, part: Part): string => {
  if (Object.values(suffixes).some((suffix) => suffix && queue.endsWith(suffix))) {
    throw new QueueRefused(`the name of a queue must not end in -high, -low or -dead: ${queue}`, { field: 'queue' })
  }
  return `${prefix}${queue}${suffixes[part]}`
}

/** Finds addresses, each once. One that could not be found is looked for again. */
export const createAddresses = (options: AddressOptions, lookUp: (name: string) => Promise<string>) => {
  const found = new Map<string, Promise<string>>()
  return async (queue: string, part: Part): Promise<string> => {
    const known = options.queues && Object.hasOwn(options.queues, queue) ? options.queues[queue] : undefined
    if (known) return known[part]
    if (options.prefix === undefined) throw new QueueRefused(`queue ${queue} is not configured`, { field: 'queue' })
    const name = nameOf(options.prefix, queue, part)
    const url = found.get(name) ?? lookUp(name)
    found.set(name, url)
    url.catch(() => found.delete(name))
    return url
  }
}
