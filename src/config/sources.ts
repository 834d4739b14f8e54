// From files, variables and flags to options, in that order of rising precedence. Nothing here reads a file or the process.

import { readEnvironment } from './environment.ts'
import { ConfigInvalid } from './faults.ts'
import { type Layer, mergeSettings, type Origin, originText, type Setting, settingFor } from './layer.ts'
import { freeze } from './load.ts'
import { type Options, options } from './options.ts'
import { nearest, schemaAt, typed } from './shape.ts'
import { readYaml } from './yaml-file.ts'

export interface Sources {
  readonly file?: { readonly path: string; readonly text: string } | undefined
  readonly env: Readonly<Record<string, string | undefined>>
  /** Keys as they stand in docs/options.md, with the flag that gave them. A text is read as the type of its option. */
  readonly flags: readonly { readonly key: string; readonly value: unknown; readonly flag: string }[]
  /** The data directory where nothing else names one. */
  readonly usualDataDir?: string
}

export interface Effective {
  readonly options: Options
  /** Where the value of an option comes from. */
  originOf(path: readonly string[]): Origin
  readonly notes: readonly string[]
}

/** One thing that is wrong, with everything that is needed to mend it. */
export interface Problem {
  readonly key: string
  /** Absent where it is no single value, or could be a secret. */
  readonly value: string | undefined
  readonly reason: string
  readonly origin: Origin
}

export type Checked =
  | { readonly ok: true; readonly effective: Effective }
  | { readonly ok: false; readonly problems: readonly Problem[]; readonly notes: readonly string[] }

/** Parses once at the door. What comes out is complete, frozen and trusted from here on. */
export const loadSources = (sources: Sources): Effective => {
  const checked = checkSources(sources)
  if (checked.ok) return checked.effective
  const [first] = checked.problems
  throw new ConfigInvalid(`configuration: ${checked.problems.map(problemText).join('; ')}`, {
    field: first?.key ?? '(top)',
  })
}

/** As `loadSources`, but tells everything that is wrong. Throws only where a source cannot be read at all. */
export const checkSources = (sources: Sources): Checked => {
  const platform: readonly Setting[] =
    sources.usualDataDir === undefined
      ? []
      : [{ path: ['embedded', 'directory'], value: sources.usualDataDir, origin: { kind: 'platform' } }]
  const file: Layer = sources.file ? readYaml(sources.file.text, sources.file.path) : { settings: [], notes: [] }
  const env = readEnvironment(sources.env)
  const flags = sources.flags.map(flagSetting)
  const { values, settings } = mergeSettings([...platform, ...file.settings, ...env.settings, ...flags])
  const notes = [...file.notes, ...env.notes]
  const parsed = options.safeParse(values)
  if (parsed.success) {
    const originOf = (path: readonly string[]): Origin => settingFor(settings, path)?.origin ?? { kind: 'default' }
    return { ok: true, effective: { options: freeze(parsed.data), originOf, notes } }
  }
  const problems = parsed.error.issues.flatMap((issue): readonly Problem[] => {
    const path = issue.path.map(String)
    if (issue.code === 'unrecognized_keys') return issue.keys.map((name) => unknown([...path, name], settings))
    const setting = settingFor(settings, path)
    const key = path.join('.') || '(top)'
    const spelled = setting?.spelled === undefined ? '' : `${setting.spelled} is ${key} here; `
    return [
      {
        key,
        value: shownValue(key, valueAt(values, path)),
        reason: `${spelled}${issue.message}`,
        origin: setting?.origin ?? { kind: 'default' },
      },
    ]
  })
  return { ok: false, problems, notes }
}

export const problemText = ({ key, value, reason, origin }: Problem): string =>
  `${key}${value === undefined ? '' : ` = ${value}`}: ${reason} (${originText(origin)})`

const flagSetting = ({ key, value, flag }: Sources['flags'][number]): Setting => {
  const path = key.split('.')
  const origin: Origin = { kind: 'flag', name: flag }
  return { path, value: typeof value === 'string' ? typed(schemaAt(path), value) : value, origin }
}

const unknown = (path: readonly string[], settings: ReadonlyMap<string, Setting>): Problem => {
  const key = path.join('.')
  const below = [...settings.entries()].find(([name]) => name === key || name.startsWith(`${key}.`))?.[1]
  const meant = nearest(below === undefined ? key : below.path.join('.'))
  return {
    key,
    value: undefined,
    reason: `there is no such option${meant === undefined ? '' : `; did you mean ${meant}?`}`,
    origin: below?.origin ?? settingFor(settings, path)?.origin ?? { kind: 'default' },
  }
}

const valueAt = (values: unknown, path: readonly string[]): unknown =>
  path.reduce<unknown>(
    (at, name) => (typeof at === 'object' && at !== null ? (at as Record<string, unknown>)[name] : undefined),
    values,
  )

const secretKey = /secret|credential|token|password/i
const valueCharactersMax = 100

/** Whether the value of an option is for nobody's eyes. */
export const isSecretKey = (key: string): boolean => secretKey.test(key)

const shownValue = (key: string, value: unknown): string | undefined => {
  const isPlain = typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean'
  return isPlain && !isSecretKey(key) ? JSON.stringify(value).slice(0, valueCharactersMax) : undefined
}
