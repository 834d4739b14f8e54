import type { Readable } from 'node:stream'

/** Everything a process wrote to one of its outputs so far, and a way to wait for more of it. */
export interface Collected {
  bytes(): Buffer
  text(): string
  lines(): readonly string[]
  /** Resolves with the match as soon as the text has it; rejects if the output ends without. */
  until(pattern: RegExp): Promise<RegExpMatchArray>
}

export const collect = (stream: Readable, name: string): Collected => {
  const chunks: Buffer[] = []
  const looks = new Set<() => void>()
  let hasEnded = false
  const look = () => {
    for (const again of [...looks]) again()
  }
  const end = () => {
    hasEnded = true
    look()
  }
  stream.on('data', (chunk: Buffer) => {
    chunks.push(chunk)
    look()
  })
  stream.once('end', end)
  stream.once('close', end)
  const text = () => Buffer.concat(chunks).toString()
  return {
    bytes: () => Buffer.concat(chunks),
    text,
    lines: () => text().split('\n').slice(0, -1),
    until: (pattern) =>
      new Promise((resolve, reject) => {
        const again = () => {
          const found = text().match(pattern)
          if (found === null && !hasEnded) return
          looks.delete(again)
          if (found === null) reject(new Error(`${name} ended without ${pattern}; it was:\n${text()}`))
          else resolve(found)
        }
        looks.add(again)
        again()
      }),
  }
}
