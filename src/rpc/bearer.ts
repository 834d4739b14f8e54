import { createHash, timingSafeEqual } from 'node:crypto'

/** Whether an `authorization` header carries one of the tokens. How long it takes does not depend on how close a guess was. */
export const createBearerCheck = (tokens: readonly string[]): ((header: string | undefined) => boolean) => {
  const accepted = tokens.map(digest)
  return (header) => {
    const [, token] = /^bearer +(\S+) *$/i.exec(header ?? '') ?? []
    if (token === undefined) return false
    // Digests have one length, and all of them are compared whatever the first ones say.
    const shown = digest(token)
    return accepted.reduce((found, one) => timingSafeEqual(one, shown) || found, false)
  }
}

const digest = (token: string): Buffer => createHash('sha256').update(token).digest()
