import { create, fromBinary, fromJsonString, toBinary } from '@bufbuild/protobuf'
import { ValueSchema } from '@bufbuild/protobuf/wkt'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { EnqueueJobRequestSchema } from '../../api/gen/millrace/v1/service_pb.js'
import { serverOptions } from '../../src/config/sections/server.ts'
import { toEnqueueRequest } from '../../src/rpc/translate-job.ts'
import { toMs, toNumber, toTimestamp } from '../../src/rpc/translate-number.ts'
import { toJson, toValue } from '../../src/rpc/translate-value.ts'
import { clients, curl, jobsPath, json, startRig } from './rig.ts'
import { commandOf } from './wire-params.ts'

const withoutProto = fc.jsonValue().filter((value) => !JSON.stringify(value).includes('__proto__'))

describe('values', () => {
  test('make the round trip through the wire unchanged', () => {
    fc.assert(
      fc.property(withoutProto, (value) => {
        // JSON has no negative zero, and neither has anybody who compares.
        const plain = JSON.parse(JSON.stringify(value))
        const wire = fromBinary(ValueSchema, toBinary(ValueSchema, toValue(plain)))
        expect(JSON.parse(JSON.stringify(toJson('input', wire)))).toEqual(plain)
      }),
    )
  })

  test.each([Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY])(
    'M22 %s is refused by its field',
    (value) => {
      const wire = create(ValueSchema, { kind: { case: 'numberValue', value } })
      expect(() => toJson('params.handler.input', wire)).toThrow('params.handler.input')
      expect(() => toJson('x', create(ValueSchema))).toThrow('of no kind')
    },
  )

  test('what the store gave is never a prototype', () => {
    const value = toValue(JSON.parse('{"__proto__":{"polluted":1},"a":{"constructor":{"prototype":{"b":1}}}}'))
    expect(JSON.stringify(value)).not.toContain('polluted')
    expect(({} as Record<string, unknown>)['polluted']).toBeUndefined()
  })
})

describe('M17 names that would be a prototype', () => {
  const inputs = [
    '{"__proto__":{"polluted":true}}',
    '{"__proto__":null}',
    '{"a":[{"\\u005f_proto__":{"polluted":true}}]}',
    '{"__proto__":{"__proto__":{}}}',
  ]
  test.each(inputs)('%s is refused over JSON', async (input) => {
    const rig = await startRig()
    const body = `{"params":{"handler":{"name":"x","input":${input}}}}`
    const answer = await curl(rig, jobsPath('EnqueueJob'), { headers: json, body })
    expect(JSON.parse(answer.text)).toMatchObject({
      code: 'invalid_argument',
      message: expect.stringContaining("params.handler.input: contains the name '__proto__'"),
    })
    expect(({} as Record<string, unknown>)['polluted']).toBeUndefined()
  })

  test('and in binary', () => {
    const named = create(EnqueueJobRequestSchema, {
      params: { kind: { case: 'handler', value: { name: 'x', input: toValue({ aaproto: 1, b: 2 }) } } },
    })
    const bytes = Buffer.from(toBinary(EnqueueJobRequestSchema, named))
    const renamed = Buffer.from(bytes.toString('latin1').replace('aaproto', '__proto'), 'latin1')
    // The name has its length before it, so the two that are missing go in with it.
    expect(toEnqueueRequest(fromBinary(EnqueueJobRequestSchema, renamed)).params).toMatchObject({
      input: { __proto: 1 },
    })
    const longer = create(EnqueueJobRequestSchema, {
      params: { kind: { case: 'handler', value: { name: 'x', input: toValue({ aaprotoaa: 1 }) } } },
    })
    const forged = Buffer.from(
      Buffer.from(toBinary(EnqueueJobRequestSchema, longer)).toString('latin1').replace('aaprotoaa', '__proto__'),
      'latin1',
    )
    expect(() => toEnqueueRequest(fromBinary(EnqueueJobRequestSchema, forged))).toThrow("'__proto__'")
  })

  test('other dangerous names are only names', async () => {
    const rig = await startRig()
    const input = { constructor: { prototype: { polluted: true } }, toString: 'x', hasOwnProperty: 1 }
    const body = JSON.stringify({ params: { handler: { name: 'x', input } } })
    const { jobId } = JSON.parse((await curl(rig, jobsPath('EnqueueJob'), { headers: json, body })).text)
    const got = await curl(rig, jobsPath('GetJob'), { headers: json, body: JSON.stringify({ jobId }) })
    expect(JSON.parse(got.text).job.params.handler.input).toEqual(input)
    expect(({} as Record<string, unknown>)['polluted']).toBeUndefined()
  })
})

describe('numbers', () => {
  test('E23 an integer is exact or refused', () => {
    fc.assert(
      fc.property(fc.bigInt({ min: -(2n ** 63n), max: 2n ** 64n }), (value) => {
        const isSafe = value >= 0n && value <= BigInt(Number.MAX_SAFE_INTEGER)
        if (isSafe) expect(BigInt(toNumber('n', value))).toBe(value)
        else expect(() => toNumber('n', value)).toThrow('n: must be')
      }),
    )
    expect(toNumber('n', 2n ** 53n - 1n)).toBe(Number.MAX_SAFE_INTEGER)
  })

  test('times make the round trip to the millisecond', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 253_402_300_799_999 }), (ms) => {
        expect(toMs('t', toTimestamp(ms))).toBe(ms)
      }),
    )
    expect(toMs('t', undefined)).toBeUndefined()
  })

  test.each([
    ['priority', { priority: 9 }],
    ['notBefore', { notBefore: { seconds: 2n ** 60n, nanos: 0 } }],
    ['delayMs', { delayMs: 2n ** 63n }],
    ['execution.maxOutputBytes', { execution: { maxOutputBytes: 2n ** 60n } }],
  ])('M22 %s out of range is refused by its name', (field, request) => {
    const params = commandOf(['x'])
    expect(() => toEnqueueRequest(create(EnqueueJobRequestSchema, { params, ...(request as object) }))).toThrow(
      `${field}: `,
    )
  })

  test('M22 a state or a page size that is none is refused', async () => {
    const { jobs } = clients(await startRig())
    await expect(jobs.listJobs({ state: 77 as never })).rejects.toThrow('state: ')
    await expect(jobs.listJobs({ pageSize: 1_001 })).rejects.toThrow('pageSize: ')
    await expect(jobs.listJobs({ idPrefix: 'xyz' })).rejects.toThrow('idPrefix: ')
    await expect(jobs.listDeadLetters({ limit: 5_000 })).rejects.toThrow('limit: ')
  })

  test('JSON that is fit for nothing is refused with a reason', () => {
    expect(() => fromJsonString(EnqueueJobRequestSchema, '{"delayMs":"x"}')).toThrow()
  })
})

describe('server options', () => {
  test('are complete by default and on loopback', () => {
    expect(serverOptions.parse({})).toMatchObject({
      host: '127.0.0.1',
      port: 7_171,
      tokens: [],
      hosts: [],
      messageBytesMax: 4_194_304,
    })
  })
  test.each([
    { tokens: ['short'] },
    { tokens: ['with blanks in it 0123456789'] },
    { port: 70_000 },
    { jsonDepthMax: 5 },
    { portt: 1 },
  ])('refuse %j', (given) => {
    expect(serverOptions.safeParse(given).success).toBe(false)
  })
})
