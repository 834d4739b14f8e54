// Calls that are not meant for us. A page of any site can make a browser call a server on this machine: under a name of its own
// that it lets point here (then Host betrays it), or directly (then Origin and Sec-Fetch-Site do).

import type { IncomingHttpHeaders } from 'node:http'
import { isIP } from 'node:net'
import { CallForeign } from './faults.ts'

export interface Arrival {
  readonly headers: IncomingHttpHeaders
  /** Of HTTP/2, where it stands in the place of Host. */
  readonly authority: string | undefined
  /** The address of ours that the connection was made to. */
  readonly localAddress: string | undefined
}

const loopbackNames = ['localhost', '127.0.0.1', '::1']

/** Whether only this machine can reach what listens there. */
export const isLoopback = (host: string): boolean =>
  host === 'localhost' || host === '::1' || (isIP(host) === 4 && host.startsWith('127.'))

/** `hosts` are names of ours beyond those of the loopback. */
export const createForeignCheck = (hosts: readonly string[]): ((arrival: Arrival) => CallForeign | undefined) => {
  const names = new Set([...loopbackNames, ...hosts.map((host) => host.toLowerCase())])
  return ({ headers, authority, localAddress }) => {
    const own = [headers.host, authority].filter((name) => name !== undefined)
    const isOurs = (name: string) => {
      const host = hostnameOf(name)
      // An address that the connection was really made to is no name that somebody else could have bent.
      return host !== undefined && (names.has(host) || host === plain(localAddress))
    }
    if (own.length === 0 || !own.every(isOurs)) return new CallForeign('host')
    const { origin } = headers
    if (origin !== undefined && !own.some((name) => isSameHost(origin, name))) return new CallForeign('origin')
    const site = headers['sec-fetch-site']
    if (site !== undefined && site !== 'same-origin' && site !== 'none') return new CallForeign('sec-fetch-site')
    return undefined
  }
}

/** `[::1]:80` → `::1`; undefined for what is no name with an optional port. */
const hostnameOf = (authority: string): string | undefined => {
  const [, bracketed, name] = /^(?:\[([0-9a-f:.]+)\]|([^:/?#@[\]\s]+))(?::\d{1,5})?$/i.exec(authority) ?? []
  return (bracketed ?? name)?.toLowerCase()
}

/** A socket that speaks both versions of IP shows addresses of the old one in the form of the new one. */
const plain = (address: string | undefined): string | undefined => address?.replace(/^::ffff:/i, '').toLowerCase()

const isSameHost = (origin: string, authority: string): boolean => {
  const [, host] = /^https?:\/\/([^/?#@\s]+)$/i.exec(origin) ?? []
  return host?.toLowerCase() === authority.toLowerCase()
}
