import { ConfigInvalid } from './faults.ts'
import type { Layer, Setting } from './layer.ts'
import { nearest, schemaAt, typed } from './shape.ts'

type Environment = Readonly<Record<string, string | undefined>>

const prefix = 'MILLRACE_'

/** Variables of ours that are no options: they say where things are, or belong to a job that runs us. */
export const ownVariables: Readonly<Record<string, string>> = {
  MILLRACE_CONFIG: 'The configuration file, as `--config`.',
  MILLRACE_DATA_DIR: 'The data directory, as `--data-dir`.',
  MILLRACE_SERVER: 'The server to talk to, as `--server`.',
  MILLRACE_TOKEN_FILE: 'The file with the API token, as `--token-file`.',
  MILLRACE_TOKEN: 'The API token itself, where a file cannot be had.',
  MILLRACE_DEBUG: 'Set to 1, internal errors are shown with where they happened.',
  MILLRACE_JOB_ID: 'Given to every command: its job.',
  MILLRACE_ATTEMPT: 'Given to every command: its attempt.',
}

/** Variables that others have made usual, in the order in which they win. */
export const usualVariables: readonly (readonly [name: string, path: readonly string[]])[] = [
  ['AWS_DEFAULT_REGION', ['aws', 'region']],
  ['AWS_REGION', ['aws', 'region']],
  ['AWS_ENDPOINT_URL', ['aws', 'endpoint', 'dynamodb']],
  ['AWS_ENDPOINT_URL', ['aws', 'endpoint', 'sqs']],
  ['AWS_ENDPOINT_URL_DYNAMODB', ['aws', 'endpoint', 'dynamodb']],
  ['AWS_ENDPOINT_URL_SQS', ['aws', 'endpoint', 'sqs']],
]

/** `MILLRACE_JOBS__RETENTION_MS` is `jobs.retentionMs`: two underscores for a dot, one before what is a capital letter. */
export const readEnvironment = (env: Environment): Layer => {
  const notes: string[] = []
  const settings: Setting[] = []
  const given = (name: string): string | undefined => (env[name] === '' ? undefined : env[name])
  for (const [name, path] of usualVariables) {
    const value = given(name)
    if (value !== undefined) settings.push({ path, value, origin: { kind: 'variable', name } })
  }
  for (const name of Object.keys(env).sort()) {
    const text = given(name)
    if (text === undefined || !name.startsWith(prefix) || name in ownVariables) continue
    const path = pathOf(name)
    const schema = schemaAt(path)
    if (schema !== undefined) {
      settings.push({ path, value: typed(schema, text), origin: { kind: 'variable', name } })
      continue
    }
    const meant = nearest(path.join('.'))
    const hint = meant === undefined ? 'docs/options.md has them all' : `did you mean ${variableOf(meant.split('.'))}?`
    if (path.length > 1)
      throw new ConfigInvalid(`variable ${name}: there is no option ${path.join('.')}; ${hint}`, { field: name })
    // One name alone may be anybody's; it is not worth failing for.
    notes.push(`variable ${name} is no option and was left alone; ${hint}`)
  }
  const directory = given('MILLRACE_DATA_DIR')
  if (directory !== undefined)
    settings.push({
      path: ['embedded', 'directory'],
      value: directory,
      origin: { kind: 'variable', name: 'MILLRACE_DATA_DIR' },
    })
  return { settings, notes }
}

const pathOf = (name: string): readonly string[] =>
  name
    .slice(prefix.length)
    .split('__')
    .map((part) => part.toLowerCase().replaceAll(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase()))

export const variableOf = (path: readonly string[]): string =>
  prefix + path.map((part) => part.replaceAll(/[A-Z]/g, (letter) => `_${letter}`).toUpperCase()).join('__')
