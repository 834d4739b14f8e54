import { randomBytes } from 'node:crypto'
import { deflateRawSync } from 'node:zlib'
import { expect, test } from 'vitest'
import { createCompressing } from '../../src/log/compressor.ts'

test('compressors that are used again give what a fresh one gives, whatever comes before and beside', async () => {
  const { compress } = createCompressing(1)
  const texts = Array.from({ length: 60 }, (_, at) => {
    if (at % 3 === 0) return randomBytes((at * 7_919) % 300_000)
    if (at % 3 === 1) return Buffer.alloc((at * 104_729) % 300_000, `text ${at} `)
    return Buffer.concat([randomBytes(90_000), Buffer.alloc(100_000, `${at}`)])
  })
  const packed = await Promise.all(texts.map(async (text) => Buffer.from(await compress(text))))
  expect(packed.map((one, at) => one.equals(deflateRawSync(texts[at] as Buffer, { level: 1 })))).not.toContain(false)
})
