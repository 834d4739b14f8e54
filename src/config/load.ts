import type { z } from 'zod'
import { ConfigInvalid } from './faults.ts'
import { type Options, options } from './options.ts'

/** Parses once at the door; what comes out is complete, frozen and trusted from here on. */
export const loadOptions = (given: unknown): Options => {
  const parsed = options.safeParse(given ?? {})
  if (!parsed.success) throw invalid(given, parsed.error)
  return freeze(parsed.data)
}

/** Names the first offending key with its value and the reason, and says how many more there are. */
const invalid = (given: unknown, error: z.ZodError): ConfigInvalid => {
  const lines = error.issues.map((issue) => {
    const path = issue.path.map(String)
    const value = path.reduce<unknown>(
      (at, name) => (typeof at === 'object' && at !== null ? (at as Record<string, unknown>)[name] : undefined),
      given,
    )
    const key = path.join('.') || '(top)'
    return { key, text: `${key}${shown(key, value)}: ${issue.message}` }
  })
  return new ConfigInvalid(`configuration: ${lines.map(({ text }) => text).join('; ')}`, {
    field: lines[0]?.key ?? '(top)',
  })
}

/** Whole objects are left out, and so is whatever could be a secret: this text ends up on screens and in logs. */
const shown = (key: string, value: unknown): string => {
  const isPlain = typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean'
  if (!isPlain || /secret|credential|token|password/i.test(key)) return ''
  return ` = ${JSON.stringify(value).slice(0, 100)}`
}

export const freeze = <T>(value: T): T => {
  if (typeof value === 'object' && value !== null) {
    for (const part of Object.values(value)) freeze(part)
    Object.freeze(value)
  }
  return value
}
