// What a job was given and we do not show (M13): values of its environment, its standard input, and arguments that look like
// secrets. The store has them all; whoever may read it gets them there.

import type { JobView } from '../jobs-client.ts'

export const hidden = '‹hidden›'

const secretName = /secret|token|passw|passphrase|credential|api[-_]?key|access[-_]?key|private[-_]?key|auth|bearer/i
/** Shorter values stand in too many places by chance. */
const valueCharactersMin = 6

export const isSecretName = (name: string): boolean => secretName.test(name)

/** Arguments with what is secret in them hidden: by the name of a flag, by form, and by the values of the job's environment. */
const safeArgv = (argv: readonly string[], env: Readonly<Record<string, string>> = {}): readonly string[] => {
  const values = Object.entries(env)
    .filter(([name, value]) => isSecretName(name) && value.length >= valueCharactersMin)
    .map(([, value]) => value)
  return argv.map((argument, at) => {
    const before = argv[at - 1]
    const followsSecretFlag =
      before !== undefined && /^--?[A-Za-z]/.test(before) && !before.includes('=') && isSecretName(before)
    if (followsSecretFlag && !argument.startsWith('-')) return hidden
    return hideValues(hideByForm(argument), values)
  })
}

const hideByForm = (argument: string): string => {
  const [, name, value] = /^(-{0,2}[\w.-]+)=([\s\S]+)$/.exec(argument) ?? []
  if (name !== undefined && value !== undefined && isSecretName(name)) return `${name}=${hidden}`
  return argument
    .replaceAll(/([a-z][a-z0-9+.-]*:\/\/[^\s/:@]*):[^\s/@]+@/gi, `$1:${hidden}@`)
    .replaceAll(/\b(bearer|basic)\s+[\w.~+/=-]+/gi, `$1 ${hidden}`)
}

const hideValues = (text: string, values: readonly string[]): string =>
  values.reduce((safe, value) => safe.replaceAll(value, hidden), text)

/** A job without what is secret in it. */
export const safeJob = (job: JobView): JobView => {
  if (job.params.kind !== 'command') return job
  const { argv, env, stdin } = job.params
  const safeEnv = env && Object.fromEntries(Object.keys(env).map((name) => [name, hidden]))
  return {
    ...job,
    params: {
      ...job.params,
      argv: safeArgv(argv, env),
      ...(safeEnv ? { env: safeEnv } : {}),
      ...(stdin === undefined ? {} : { stdin: hidden }),
    },
  }
}
