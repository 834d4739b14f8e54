import { Writable } from 'node:stream'
import { pino } from 'pino'
import { describe, expect, test } from 'vitest'
import { createLogger, logEvents } from '../../src/telemetry/logger.ts'

const recorded = () => {
  const lines: Record<string, unknown>[] = []
  const sink = new Writable({
    write: (chunk: Buffer, _, done) => {
      lines.push(JSON.parse(chunk.toString()) as Record<string, unknown>)
      done()
    },
  })
  return { lines, sink }
}

describe('the logger', () => {
  test('writes events as constant messages with their data as fields, those for people louder', () => {
    const { lines, sink } = recorded()
    const emit = logEvents(pino({ level: 'debug' }, sink))
    emit({ name: 'job.enqueued', jobId: 'j\n{"level":60}', queue: 'default' })
    emit({ name: 'job.fenced', jobId: 'j', attempt: 1, verb: 'renew' })
    expect(lines).toMatchObject([
      { level: 20, msg: 'job.enqueued', jobId: 'j\n{"level":60}', queue: 'default' },
      { level: 40, msg: 'job.fenced', attempt: 1 },
    ])
  })

  test('M13 secrets do not reach it, whatever object they hide in', () => {
    const { lines, sink } = recorded()
    const logger = createLogger({ level: 'info' }, sink)
    logger.info({ token: 'hunter2', aws: { secretAccessKey: 'hunter2' }, env: { A: 'hunter2' } }, 'started')
    expect(JSON.stringify(lines)).not.toContain('hunter2')
    expect(lines).toHaveLength(1)
  })

  test('L09 a sink that throws breaks nothing', () => {
    const broken = () => {
      throw new Error('no sink')
    }
    const emit = logEvents({ warn: broken, info: broken, debug: broken } as never)
    expect(() => emit({ name: 'warning', text: 'x' })).not.toThrow()
  })
})
