// The options as a tree of names, read off the schema once: which names there are, and what type a text stands for.

import { z } from 'zod'
import { options } from './options.ts'

type Schema = z.core.JSONSchema.BaseSchema

const schemaOfAll = (): Schema =>
  z.toJSONSchema(options, { io: 'input', unrepresentable: 'any', reused: 'inline' }) as Schema

let known: Schema | undefined

/** What the schema says about an option, or undefined if there is none of that name. */
export const schemaAt = (path: readonly string[]): Schema | undefined => {
  known ??= schemaOfAll()
  let at: Schema | undefined = known
  for (const name of path) {
    const next: unknown =
      at?.properties?.[name] ?? (typeof at?.additionalProperties === 'object' && at.additionalProperties)
    if (typeof next !== 'object' || next === null) return undefined
    at = next as Schema
  }
  return at
}

/** The name of every option that is no section. */
export const allKeys = (): readonly string[] => {
  known ??= schemaOfAll()
  const below = (schema: Schema, path: readonly string[]): readonly string[] =>
    schema.properties === undefined
      ? [path.join('.')]
      : Object.entries(schema.properties).flatMap(([name, part]) => below(part as Schema, [...path, name]))
  return below(known, [])
}

/** A text as the type that the option has. What does not fit stays a text, and the schema refuses it with its limits. */
export const typed = (schema: Schema | undefined, text: string): unknown => {
  switch (schema?.type) {
    case 'integer':
    case 'number':
      return text.trim() !== '' && Number.isFinite(Number(text)) ? Number(text) : text
    case 'boolean':
      return text === 'true' || text === '1' ? true : text === 'false' || text === '0' ? false : text
    case 'array':
      return text.trim().startsWith('[') ? parsed(text) : list(schema, text)
    case 'object':
      return parsed(text)
    default:
      return text
  }
}

const list = (schema: Schema, text: string): readonly unknown[] =>
  text
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== '')
    .map((part) => typed(schema.items as Schema | undefined, part))

const parsed = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

/** The key that somebody may have meant. */
export const nearest = (key: string): string | undefined => {
  let best: { readonly key: string; readonly distance: number } | undefined
  for (const candidate of allKeys()) {
    const distance = Math.min(
      distanceOf(key.toLowerCase(), candidate.toLowerCase()),
      // Without its section, for those who left it out.
      distanceOf(key.toLowerCase(), (candidate.split('.').at(-1) as string).toLowerCase()) + 1,
    )
    if (best === undefined || distance < best.distance) best = { key: candidate, distance }
  }
  return best !== undefined && best.distance <= Math.max(2, Math.floor(key.length / 4)) ? best.key : undefined
}

/** How many letters are to be changed, put in or left out. */
const distanceOf = (a: string, b: string): number => {
  let row = Array.from({ length: b.length + 1 }, (_, at) => at)
  for (let i = 1; i <= a.length; i++) {
    const next = [i]
    for (let j = 1; j <= b.length; j++)
      next[j] = Math.min(
        (row[j] as number) + 1,
        (next[j - 1] as number) + 1,
        (row[j - 1] as number) + (a[i - 1] === b[j - 1] ? 0 : 1),
      )
    row = next
  }
  return row[b.length] as number
}
