import type { Key, Row } from '../tables/port.ts'
import { checkJobId } from './check.ts'
import { read, readJobRow, type StoreContext } from './context.ts'
import { JobUnknown } from './faults.ts'
import type { Job } from './job.ts'
import { isWhole, jobsTable, textKeys, toJob } from './keys.ts'

/** One job with everything that belongs to it. */
export const getJob = async (context: StoreContext, jobId: string): Promise<Job> => {
  checkJobId(jobId)
  const row = await readJobRow(context, jobId)
  if (!row) throw new JobUnknown(jobId)
  return readJob(context, row)
}

/** The job of a row, with the texts fetched that are items of their own. */
export const readJob = (context: StoreContext, row: Row): Job | Promise<Job> =>
  isWhole(row) ? toJob(row) : readParts(context, row)

const readParts = async (context: StoreContext, row: Row): Promise<Job> => {
  const wanted = Object.entries(textKeys(row))
  const rows = await read(context, () =>
    context.tables.getMany(
      jobsTable.name,
      wanted.map(([, key]) => key as Key),
    ),
  )
  const texts = wanted.flatMap(([name], index) => {
    const value = rows[index]?.[name]
    return typeof value === 'string' ? [[name, value] as const] : []
  })
  return toJob(row, Object.fromEntries(texts))
}
