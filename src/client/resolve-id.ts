import { IdAmbiguous, ServerFault } from './faults.ts'

/** How many jobs a fault lists. */
export const candidatesMax = 10
const wholeIdLength = 36

/** The job that an abbreviated id means. `begins` gives the ids that begin so, in any order. */
export const resolveId = async (
  given: string,
  begins: (prefix: string) => AsyncIterable<{ readonly id: string }>,
): Promise<string> => {
  const prefix = given.toLowerCase()
  if (prefix.length === wholeIdLength) return prefix
  const found: string[] = []
  // An empty prefix would mean every job, which nobody means.
  if (prefix) {
    for await (const { id } of begins(prefix)) {
      if (found.length > candidatesMax) break
      found.push(id)
    }
  }
  const [first] = found
  if (first === undefined) throw new ServerFault('JOB_UNKNOWN', `no job's id begins with '${given}'`, 'never')
  if (found.length === 1) return first
  throw new IdAmbiguous(given, found.slice(0, candidatesMax), found.length > candidatesMax)
}
