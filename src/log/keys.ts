import type { TableSchema } from '../tables/port.ts'

/** Each attempt has a log of its own: a second run never overwrites the first, and a stale worker writes where nobody reads. */
export const eventsTable: TableSchema = {
  name: 'job_events',
  partition: 'log_id',
  sort: { attribute: 'sequence', type: 'number' },
  ttl: 'ttl',
  indexes: {},
}

export const logId = (jobId: string, attempt: number): string => `${jobId}#${attempt}`
