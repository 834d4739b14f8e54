import { createHmac, timingSafeEqual } from 'node:crypto'
import { assert } from '../kernel/assert.ts'

export interface SigningKey {
  /** Travels with what it signed, so that old keys are found again after a rotation. 1 to 32 letters or digits. */
  readonly id: string
  readonly secret: Uint8Array
}

/** Signs texts that leave the process and come back. */
export interface Signer {
  /** `purpose` keeps a signature made for one thing from being used for another. */
  sign(purpose: string, fields: readonly string[]): string
  /** The fields, or undefined for anything that was not signed for this purpose with one of our keys. */
  open(purpose: string, signed: string): readonly string[] | undefined
}

const macBytes = 32
const secretBytesMin = 32
const signedCharsMax = 4_096

/** The first key signs; the others are still accepted, until what they signed has expired. */
export const createSigner = (keys: readonly SigningKey[]): Signer => {
  const [current] = keys
  assert(current, 'a signer without keys')
  for (const key of keys) {
    assert(/^[A-Za-z0-9]{1,32}$/.test(key.id), 'a signing key needs an id of 1 to 32 letters or digits')
    assert(key.secret.length >= secretBytesMin, `a signing secret needs at least ${secretBytesMin} bytes`)
  }
  const byId = new Map(keys.map((key) => [key.id, key]))
  const mac = (key: SigningKey, purpose: string, body: Uint8Array) =>
    createHmac('sha256', key.secret)
      .update(pack([purpose, key.id]))
      .update(body)
      .digest()

  return {
    sign: (purpose, fields) => {
      const body = pack(fields)
      return `${current.id}.${Buffer.concat([mac(current, purpose, body), body]).toString('base64url')}`
    },
    open: (purpose, signed) => {
      if (typeof signed !== 'string' || signed.length > signedCharsMax) return undefined
      const dot = signed.indexOf('.')
      const key = byId.get(signed.slice(0, Math.max(0, dot)))
      const text = signed.slice(dot + 1)
      const bytes = Buffer.from(text, 'base64url')
      // A text that decodes to the same bytes in two ways would be two tokens for one thing.
      if (!key || bytes.length < macBytes || bytes.toString('base64url') !== text) return undefined
      const body = bytes.subarray(macBytes)
      return timingSafeEqual(mac(key, purpose, body), bytes.subarray(0, macBytes)) ? unpack(body) : undefined
    },
  }
}

/** Each field with its length before it, so that no field can run into the next. */
const pack = (fields: readonly string[]): Buffer =>
  Buffer.concat(
    fields.flatMap((field) => {
      const bytes = Buffer.from(field)
      const length = Buffer.alloc(4)
      length.writeUInt32BE(bytes.length)
      return [length, bytes]
    }),
  )

/** Only ever called on bytes that we packed ourselves: the signature was checked before. */
const unpack = (bytes: Buffer): readonly string[] => {
  const fields: string[] = []
  for (let at = 0; at < bytes.length; ) {
    const length = bytes.readUInt32BE(at)
    fields.push(bytes.toString('utf8', at + 4, at + 4 + length))
    at += 4 + length
  }
  return fields
}
