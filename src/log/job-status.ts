/** What a follower must know of the job, as its row says. */
export interface JobStatus {
  readonly state: string
  readonly attempt: number
  /** The one stored with the job, never today's setting. */
  readonly batchSizeBound: number
  readonly result: unknown
  readonly error: string | undefined
}

/** In the place of a row that is not there. */
export const unknownJob: JobStatus = {
  state: 'UNKNOWN',
  attempt: 0,
  batchSizeBound: 1,
  result: undefined,
  error: undefined,
}

export const isUnknown = ({ state }: JobStatus): boolean => state === unknownJob.state

/** Whether the job has come to its end. */
export const isEnded = ({ state }: JobStatus): boolean => state !== 'SCHEDULED' && state !== 'RUNNING'

/** Whether an attempt can write nothing more that anybody would take for current. */
export const isOver = (status: JobStatus, attempt: number): boolean =>
  status.attempt > attempt || (status.attempt === attempt && status.state !== 'RUNNING') || isUnknown(status)
