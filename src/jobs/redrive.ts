import { checkJobId } from './check.ts'
import { decide, readJobRow, type StoreContext, sendAfter } from './context.ts'
import { JobNotReady, JobUnknown } from './faults.ts'
import { isEndedRow, jobsTable, number, paramsKey, stateOf, text } from './keys.ts'
import { moveBack } from './moves.ts'

/**
 * A person starts an ended job again: the same job, a new run. The caller says which run it saw, so that two people who press
 * the button at once start it once.
 */
export const redrive = async (context: StoreContext, jobId: string, run: number): Promise<{ readonly run: number }> => {
  checkJobId(jobId)
  const row = await readJobRow(context, jobId)
  if (!row) throw new JobUnknown(jobId)
  // Somebody did it already, perhaps this very call whose answer was lost.
  if (number(row, 'run') === run + 1 && !isEndedRow(row)) return { run: run + 1 }
  const state = stateOf(row)
  if (state !== 'FAILED' && state !== 'CANCELLED')
    throw new JobNotReady(`job ${jobId} is ${state} and cannot be retried`)
  if (number(row, 'run') !== run) {
    throw new JobNotReady(`job ${jobId} is in run ${number(row, 'run')}, not ${run}: look at it again`)
  }
  const now = context.clock.now()
  const move = moveBack(context, row, {
    event: 'redriven',
    if: {
      test: 'all',
      of: [
        { test: '=', attribute: 'state', value: state },
        { test: '=', attribute: 'run', value: run },
        { test: '>', attribute: 'ttl', value: Math.floor(now / 1000) },
      ],
    },
    notBefore: now,
    set: { run: run + 1 },
    remove: [
      'ttl',
      'cancel_requested_at',
      'failed_attempts',
      'lost_attempts',
      'unheard_claims',
      'postponed',
      'result',
      'result_outside',
      'error',
      'error_outside',
    ],
  })
  const keepParams =
    row['params'] === undefined
      ? [
          {
            kind: 'update' as const,
            table: jobsTable.name,
            key: paramsKey(jobId),
            remove: ['ttl'],
            if: { test: 'present' as const },
          },
        ]
      : []
  const decided = await decide(context, { actions: [...move.write.actions, ...keepParams] })
  if (decided.kind === 'refused') throw new JobNotReady(`job ${jobId} changed meanwhile: look at it again`)
  context.emit({ name: 'job.redriven', jobId, queue: text(row, 'queue'), run: run + 1 })
  await sendAfter(context, move.outgoing)
  return { run: run + 1 }
}
