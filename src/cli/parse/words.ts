// Names, pairs and ids from the command line. None of these complaints repeats a value: it could be a secret (M13).

import { UsageInvalid } from '../faults.ts'

/** `KEY=VALUE`, collected over repeated flags. Without `=VALUE` the value is taken from our own environment. */
export const collectEnv =
  (flag: string, own: Readonly<Record<string, string | undefined>>) =>
  (text: string, before: Readonly<Record<string, string>> = {}): Readonly<Record<string, string>> => {
    const at = text.indexOf('=')
    const name = at === -1 ? text : text.slice(0, at)
    if (!/^[A-Za-z_][A-Za-z0-9_.-]*$/.test(name))
      throw new UsageInvalid(`${flag} takes KEY=VALUE, with letters, digits and _ in KEY`, { field: flag })
    const value = at === -1 ? own[name] : text.slice(at + 1)
    if (value === undefined)
      throw new UsageInvalid(`${flag} ${name}: there is no such variable here; write ${name}=VALUE`, { field: flag })
    if (value.includes('\0')) throw new UsageInvalid(`${flag} ${name}: a value has no NUL in it`, { field: flag })
    return { ...before, [name]: value }
  }

export interface Assignment {
  readonly key: string
  readonly text: string
}

/** `key=value` of an option, collected. */
export const collectSet = (text: string, before: readonly Assignment[] = []): readonly Assignment[] => {
  const at = text.indexOf('=')
  if (at < 1) throw new UsageInvalid('--set takes key=value, such as jobs.retentionMs=86400000', { field: '--set' })
  return [...before, { key: text.slice(0, at), text: text.slice(at + 1) }]
}

export const collect = (text: string, before: readonly string[] = []): readonly string[] => [...before, text]

export const parseChoice =
  <Word extends string>(flag: string, words: readonly Word[]) =>
  (text: string): Word => {
    const found = words.find((word) => word.toLowerCase() === text.toLowerCase())
    if (found === undefined) throw new UsageInvalid(`${flag} is one of ${words.join(', ')}`, { field: flag })
    return found
  }

/** Words with commas between them, or the flag repeated. */
export const collectChoices =
  <Word extends string>(flag: string, words: readonly Word[]) =>
  (text: string, before: readonly Word[] = []): readonly Word[] => [
    ...before,
    ...text.split(',').map((word) => parseChoice(flag, words)(word.trim())),
  ]

/** A path as the system takes it. */
export const parsePath =
  (flag: string) =>
  (text: string): string => {
    if (text === '' || text.includes('\0')) throw new UsageInvalid(`${flag} takes a path`, { field: flag })
    return text
  }

const idCharactersMin = 4

/** A job's id or how it begins. Whatever else stands there goes to no server and into no path (M08). */
export const parseJobId = (text: string): string => {
  const id = text.toLowerCase()
  const isId = /^[0-9a-f-]{4,36}$/.test(id) && /^[0-9a-f]/.test(id)
  if (!isId)
    throw new UsageInvalid(
      `a job id has hexadecimal digits and -, and at least the first ${idCharactersMin} characters are needed`,
      { field: 'job' },
    )
  return id
}

export const isWholeId = (id: string): boolean =>
  /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/.test(id)

const schemes = ['http:', 'https:']

/** Where a server is. Credentials in it would end up in logs and process lists, so they are refused. */
export const parseServer = (text: string): string => {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (!url || !schemes.includes(url.protocol))
    throw new UsageInvalid('--server takes an address such as http://127.0.0.1:4555', { field: '--server' })
  if (url.username !== '' || url.password !== '')
    throw new UsageInvalid('--server takes no credentials; put the token into a file and use --token-file', {
      field: '--server',
    })
  return url.href.replace(/\/$/, '')
}
