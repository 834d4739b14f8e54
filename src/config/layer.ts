// Where options come from. A layer is one source: nested values, and for each of them the place it was written at.

/** Where a value was written. */
export type Origin =
  | { readonly kind: 'file'; readonly path: string; readonly line: number; readonly column: number }
  | { readonly kind: 'variable'; readonly name: string }
  | { readonly kind: 'flag'; readonly name: string }
  | { readonly kind: 'platform' }
  | { readonly kind: 'default' }

export interface Setting {
  readonly path: readonly string[]
  readonly value: unknown
  readonly origin: Origin
  /** Another spelling that it was written in, if it was. */
  readonly spelled?: string
}

export interface Layer {
  readonly settings: readonly Setting[]
  /** What is worth knowing and wrong with nothing. */
  readonly notes: readonly string[]
}

export interface Merged {
  readonly values: Readonly<Record<string, unknown>>
  readonly settings: ReadonlyMap<string, Setting>
}

/** Names that an object has without anybody having written them; as keys they are only ever an attack (M17). */
const forbidden = new Set(['__proto__', 'constructor', 'prototype'])

/** Later settings win. A value that is an object was written as a whole and replaces what was below it. */
export const mergeSettings = (settings: readonly Setting[]): Merged => {
  const values: Record<string, unknown> = {}
  const won = new Map<string, Setting>()
  for (const setting of settings) {
    if (setting.path.length === 0 || setting.path.some((name) => forbidden.has(name))) continue
    let at = values
    for (const name of setting.path.slice(0, -1)) at = at[name] = isRecord(at[name]) ? at[name] : {}
    at[setting.path.at(-1) as string] = setting.value
    const key = setting.path.join('.')
    for (const other of won.keys()) if (other.startsWith(`${key}.`)) won.delete(other)
    won.set(key, setting)
  }
  return { values, settings: won }
}

export const isForbidden = (name: string): boolean => forbidden.has(name)

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** The setting that a key of the whole comes from: its own, or the one that was written around it. */
export const settingFor = (settings: ReadonlyMap<string, Setting>, path: readonly string[]): Setting | undefined => {
  for (let length = path.length; length > 0; length--) {
    const found = settings.get(path.slice(0, length).join('.'))
    if (found) return found
  }
  return undefined
}

export const originText = (origin: Origin): string => {
  switch (origin.kind) {
    case 'file':
      return `${origin.path}:${origin.line}:${origin.column}`
    case 'variable':
      return `variable ${origin.name}`
    case 'flag':
      return `flag ${origin.name}`
    case 'platform':
      return 'the usual place on this platform'
    case 'default':
      return 'default'
  }
}
