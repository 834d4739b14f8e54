/** What is given to every program, so that it can fence its own effects. */
export const jobIdVariable = 'MILLRACE_JOB_ID'
export const attemptVariable = 'MILLRACE_ATTEMPT'

/**
 * The environment of a program: what the list allows of our own, then the job's own, then who it runs for. Never anything else:
 * our own environment holds credentials.
 */
export const childEnvironment = (
  ours: Readonly<Record<string, string>>,
  allowed: readonly string[],
  job: { readonly id: string; readonly attempt: number },
  own: Readonly<Record<string, string>> = {},
): Record<string, string> => {
  const given = Object.entries(ours).filter(([name]) => allowed.some((pattern) => covers(pattern, name)))
  return {
    ...Object.fromEntries(given),
    ...own,
    [jobIdVariable]: job.id,
    [attemptVariable]: String(job.attempt),
  }
}

/** A trailing `*` stands for any rest of a name. */
const covers = (pattern: string, name: string): boolean =>
  pattern.endsWith('*') ? name.startsWith(pattern.slice(0, -1)) : name === pattern
