import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { createSigner, type SigningKey } from '../../src/jobs/signer.ts'
import { createTokens } from '../../src/jobs/tokens.ts'
import { createVirtualClock } from '../../src/sim/virtual-clock.ts'

const key = (id: string, fill: number): SigningKey => ({ id, secret: new Uint8Array(32).fill(fill) })
const hold = { jobId: '01890a5d-ac96-774b-bcce-b302099a8057', queue: 'default', attempt: 3 }
const refused = { code: 'TOKEN_REFUSED', message: 'the task token is not valid' }
const withKeys = (...keys: SigningKey[]) => {
  const clock = createVirtualClock()
  return { clock, tokens: createTokens({ clock, signer: createSigner(keys) }) }
}

describe('C14 task tokens', () => {
  test('give back what they were issued for, and nothing about them is readable as something else', () => {
    const { tokens } = withKeys(key('k1', 1))
    expect(tokens.verify(tokens.issue(hold, 60_000))).toEqual(hold)
    expect(tokens.verify(tokens.issue(hold, 60_000), 'default')).toEqual(hold)
  })

  test('of another queue, another key, another purpose, cut, lengthened or changed are refused with one text', () => {
    const { tokens } = withKeys(key('k1', 1))
    const token = tokens.issue(hold, 60_000)
    const forged = withKeys(key('k1', 2)).tokens.issue(hold, 60_000)
    const cursor = createSigner([key('k1', 1)]).sign('cursor', [hold.jobId, 'default', '3', '9999999999999'])
    expect(() => tokens.verify(token, 'other')).toThrow(expect.objectContaining(refused))
    for (const wrong of [forged, cursor, '', '.', 'k1.', token.slice(0, -1), `${token}A`, token.replace('k1', 'k2')]) {
      expect(() => tokens.verify(wrong)).toThrow(expect.objectContaining(refused))
    }
    expect(() => tokens.verify(undefined as never)).toThrow(expect.objectContaining(refused))
  })

  test('no change of a single character is accepted', () => {
    const { tokens } = withKeys(key('k1', 1))
    const token = tokens.issue(hold, 60_000)
    fc.assert(
      fc.property(fc.nat(token.length - 1), fc.string({ minLength: 1, maxLength: 1 }), (at, character) => {
        const changed = token.slice(0, at) + character + token.slice(at + 1)
        if (changed === token) return
        expect(() => tokens.verify(changed)).toThrow(expect.objectContaining(refused))
      }),
    )
  })

  test('expire ten minutes after the lease', async () => {
    const { tokens, clock } = withKeys(key('k1', 1))
    const token = tokens.issue(hold, 60_000)
    await clock.advance(60_000 + 10 * 60_000 - 1)
    expect(tokens.verify(token)).toEqual(hold)
    await clock.advance(1)
    expect(() => tokens.verify(token)).toThrow(expect.objectContaining(refused))
  })

  test('C15 an old key is accepted until it is taken away, and a new one signs from the start', () => {
    const old = withKeys(key('k1', 1)).tokens.issue(hold, 60_000)
    const rotated = withKeys(key('k2', 2), key('k1', 1)).tokens
    expect(rotated.verify(old)).toEqual(hold)
    const fresh = rotated.issue(hold, 60_000)
    expect(withKeys(key('k2', 2)).tokens.verify(fresh)).toEqual(hold)
    expect(() => withKeys(key('k2', 2)).tokens.verify(old)).toThrow(expect.objectContaining(refused))
  })

  test('fields cannot run into each other', () => {
    const signer = createSigner([key('k1', 1)])
    fc.assert(
      fc.property(fc.array(fc.string({ unit: 'binary' })), (fields) => {
        const text = fields.map((field) => Buffer.from(field).toString('utf8'))
        expect(signer.open('p', signer.sign('p', text))).toEqual(text)
      }),
    )
    expect(signer.sign('p', ['ab', 'c'])).not.toBe(signer.sign('p', ['a', 'bc']))
  })

  test('weak secrets are refused at the start', () => {
    expect(() => createSigner([])).toThrow('without keys')
    expect(() => createSigner([{ id: 'k', secret: new Uint8Array(16) }])).toThrow('at least 32 bytes')
    expect(() => createSigner([{ id: 'a.b', secret: new Uint8Array(32) }])).toThrow('letters or digits')
  })
})
