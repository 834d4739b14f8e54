import { decide, readJobRow, type StoreContext } from './context.ts'
import { JobUnknown } from './faults.ts'
import { isEndedRow, jobKey, jobsTable } from './keys.ts'

/** How long a mark counts; whoever goes on watching renews it in half of that. */
export const watchedMs = 60_000

/** Marks the job as watched, so that its worker stores output at once. Jobs that have ended need no mark. */
export const watch = async (context: StoreContext, jobId: string): Promise<void> => {
  const row = await readJobRow(context, jobId)
  if (!row) throw new JobUnknown(jobId)
  if (isEndedRow(row)) return
  await decide(context, {
    actions: [
      {
        kind: 'update',
        table: jobsTable.name,
        key: jobKey(jobId),
        set: { watched_until: context.clock.now() + watchedMs },
        if: {
          test: 'any',
          of: [
            { test: '=', attribute: 'state', value: 'SCHEDULED' },
            { test: '=', attribute: 'state', value: 'RUNNING' },
          ],
        },
        keep: true,
      },
    ],
  })
}
