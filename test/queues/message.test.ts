import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { decodeMessage, encodeMessage } from '../../src/queues/message.ts'
import { type Message, priorities } from '../../src/queues/port.ts'

const message: Message = { jobId: 'job-1', queue: 'mail', priority: 'normal', attempt: 3 }
const body = { job_id: 'job-1', queue: 'mail', priority: 'normal', attempt: 3, v: 1 }

const word = fc.string({
  unit: fc.integer({ min: 0x21, max: 0x7e }).map((code) => String.fromCharCode(code)),
  minLength: 1,
  maxLength: 128,
})
const anyMessage = fc.record({
  jobId: word,
  queue: word,
  priority: fc.constantFrom(...priorities),
  attempt: fc.maxSafeNat(),
})

describe('the body of a message', () => {
  test('has the names that other programs know', () => {
    expect(JSON.parse(encodeMessage(message))).toEqual(body)
  })

  test('is read back as it was written', () => {
    fc.assert(
      fc.property(anyMessage, (any) => {
        expect(decodeMessage(encodeMessage(any))).toEqual(any)
      }),
    )
  })

  test('B06 any text is either one of ours or refused, and never breaks the reader', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.json(), fc.string({ unit: 'binary' })), (text) => {
        const read = decodeMessage(text)
        if (read) expect(decodeMessage(encodeMessage(read))).toEqual(read)
      }),
      { numRuns: 1_000 },
    )
  })

  test('B06 any change of one field is either one of ours or refused', () => {
    fc.assert(
      fc.property(fc.constantFrom('job_id', 'queue', 'priority', 'attempt', 'v'), fc.jsonValue(), (field, value) => {
        const read = decodeMessage(JSON.stringify({ ...body, [field]: value }))
        if (read) expect(decodeMessage(encodeMessage(read))).toEqual(read)
      }),
      { numRuns: 1_000 },
    )
  })

  test.each([
    ['not JSON', '{"job_id":'],
    ['nothing', ''],
    ['null', 'null'],
    ['a list', '[]'],
    ['a number', '7'],
    ['no job', JSON.stringify({ ...body, job_id: undefined })],
    ['a job that is not text', JSON.stringify({ ...body, job_id: 7 })],
    ['an empty job', JSON.stringify({ ...body, job_id: '' })],
    ['a job with a control character', JSON.stringify({ ...body, job_id: 'a\n' })],
    ['a job that is too long', JSON.stringify({ ...body, job_id: 'a'.repeat(129) })],
    ['an unknown priority', JSON.stringify({ ...body, priority: 'urgent' })],
    ['an inherited priority', JSON.stringify({ ...body, priority: 'constructor' })],
    ['a negative attempt', JSON.stringify({ ...body, attempt: -1 })],
    ['half an attempt', JSON.stringify({ ...body, attempt: 1.5 })],
    ['an attempt that cannot be counted', JSON.stringify({ ...body, attempt: 2 ** 53 })],
    ['a newer version', JSON.stringify({ ...body, v: 2 })],
    ['no version', JSON.stringify({ ...body, v: undefined })],
  ])('B06 %s is refused', (_, text) => {
    expect(decodeMessage(text)).toBeUndefined()
  })

  test('fields that we do not know are ignored', () => {
    expect(decodeMessage(JSON.stringify({ ...body, trace: 'x' }))).toEqual(message)
  })

  test('what could not be read back is never written', () => {
    expect(() => encodeMessage({ ...message, jobId: 'a b' })).toThrow('not a message')
  })
})
