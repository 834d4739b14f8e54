import { type DestinationStream, type Logger, pino } from 'pino'
import type { Emit, TelemetryEvent } from './events.ts'

/** What deserves a person's attention; everything else is for those who look closely. */
const levels: Partial<Record<TelemetryEvent['name'], 'warn' | 'info'>> = {
  warning: 'warn',
  'message.unsent': 'warn',
  'message.deadLettered': 'warn',
  'message.unacknowledged': 'warn',
  'job.fenced': 'warn',
  'job.expired': 'warn',
  'job.settled': 'info',
  'job.redriven': 'info',
}

/** Secrets never reach a log, whatever object they hide in. */
const redact = ['secret', 'token', '*.secret', '*.token', '*.secretAccessKey', 'env', '*.env']

/** To standard output, unless another destination is given. */
export const createLogger = (options: { readonly level: string }, destination?: DestinationStream): Logger =>
  destination ? pino({ level: options.level, redact }, destination) : pino({ level: options.level, redact })

/** Events as lines of a log: constant messages, data as fields. A sink that fails breaks nothing (style L3). */
export const logEvents =
  (logger: Pick<Logger, 'warn' | 'info' | 'debug'>): Emit =>
  ({ name, ...fields }) => {
    try {
      logger[levels[name] ?? 'debug'](fields, name)
    } catch {
      // Watching must never break the work.
    }
  }
