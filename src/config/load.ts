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
    const shown = value === undefined ? '' : ` = ${JSON.stringify(value)?.slice(0, 100)}`
    return { key: path.join('.') || '(top)', text: `${path.join('.') || '(top)'}${shown}: ${issue.message}` }
  })
  return new ConfigInvalid(`configuration: ${lines.map(({ text }) => text).join('; ')}`, {
    field: lines[0]?.key ?? '(top)',
  })
}

const freeze = <T>(value: T): T => {
  if (typeof value === 'object' && value !== null) {
    for (const part of Object.values(value)) freeze(part)
    Object.freeze(value)
  }
  return value
}
