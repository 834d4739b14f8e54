// The reference pages that are made from code: faults from their catalogues, options from their schema.

import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { z } from 'zod'
import type { FaultEntry } from '../src/kernel/fault.ts'

export interface Catalogue {
  /** The file, from the checkout's top, with forward slashes. */
  readonly file: string
  /** The exported name, such as `tableFaults`. */
  readonly name: string
  readonly entries: Readonly<Record<string, FaultEntry>>
}

/** Every exported value whose name ends in `Faults`, of every `*faults.ts` below src, in the order of their files. */
export const loadCatalogues = async (checkout: string): Promise<readonly Catalogue[]> => {
  const files = readdirSync(join(checkout, 'src'), { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('faults.ts'))
    .map((file) => `src/${file.replaceAll('\\', '/')}`)
    .sort()
  const loaded = files.map(async (file) => {
    const exported: Record<string, unknown> = await import(pathToFileURL(join(checkout, file)).href)
    return Object.entries(exported)
      .filter(([name]) => name.endsWith('Faults'))
      .map(([name, entries]) => ({ file, name, entries: entries as Catalogue['entries'] }))
  })
  return (await Promise.all(loaded)).flat()
}

/** docs/faults.md. */
export const faultsPage = (catalogues: readonly Catalogue[]): string =>
  page('Faults', [
    'Every failure that is expected has a code. Branch on the code, never on the message. Codes are never reused.',
    ...catalogues.flatMap(({ file, name, entries }) => [
      `## ${titleOf(name)}`,
      `From \`${file}\`.`,
      ...Object.entries(entries).flatMap(([code, entry]) => [
        `### ${code}`,
        entry.meaning,
        [`- What happens next: ${entry.next}`, `- What you can do: ${entry.advice}`].join('\n'),
      ]),
    ]),
  ])

/** `directoryFaults` is headed "Directory", `writeBehindFaults` "Write behind". */
const titleOf = (name: string): string => {
  const words = name.replace(/Faults$/, '').replaceAll(/(?<=[a-z])[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`)
  return words.charAt(0).toUpperCase() + words.slice(1)
}

/** The schema of all options, or undefined as long as there is none. */
export const loadOptions = async (checkout: string): Promise<z.ZodType | undefined> => {
  const file = join(checkout, 'src', 'config', 'options.ts')
  if (!existsSync(file)) return undefined
  const { options }: { options: z.ZodType } = await import(pathToFileURL(file).href)
  return options
}

/** docs/options.md. */
export const optionsPage = (options: z.ZodType): string =>
  page('Options', [
    'Every option with its default and its limits. An unknown name is refused.',
    ...section(z.toJSONSchema(options, { io: 'input', unrepresentable: 'any', reused: 'inline' }), []),
  ])

type Schema = z.core.JSONSchema.BaseSchema

/** One object: its own options as a table, then each object inside it under a heading of its own. */
const section = (schema: Schema, path: readonly string[]): readonly string[] => {
  const parts = Object.entries(schema.properties ?? {}).map(([name, part]) => [name, part as Schema] as const)
  const required = new Set(schema.required ?? [])
  const rows = parts.filter(([, part]) => part.properties === undefined)
  const table = [
    '| option | type | default | meaning |',
    '| --- | --- | --- | --- |',
    ...rows.map(([name, part]) => row([...path, name].join('.'), part, required.has(name))),
  ]
  return [
    ...(path.length > 0 ? [`## ${path.join('.')}`] : []),
    ...(path.length > 0 && schema.description ? [schema.description] : []),
    ...(rows.length > 0 ? [table.join('\n')] : []),
    ...parts
      .filter(([, part]) => part.properties !== undefined)
      .flatMap(([name, part]) => section(part, [...path, name])),
  ]
}

const row = (name: string, schema: Schema, required: boolean): string => {
  const preset = schema.default === undefined ? (required ? 'required' : 'none') : code(JSON.stringify(schema.default))
  return `| ${[code(name), typeOf(schema), preset, cell(schema.description ?? '')].join(' | ')} |`
}

/** The type in words, with its limits: `whole number, 1 to 10`, `list of text, at most 4`. */
const typeOf = (schema: Schema): string => {
  const choices = schema.enum ?? (schema.const === undefined ? undefined : [schema.const])
  if (choices !== undefined) return choices.map((choice) => code(JSON.stringify(choice))).join(' or ')
  const alternatives = schema.oneOf ?? schema.anyOf
  if (alternatives !== undefined) return alternatives.map((one) => typeOf(one as Schema)).join(' or ')
  const names = [schema.type ?? 'any'].flat().map((type) => words[type] ?? type)
  const items =
    schema.type === 'array' && typeof schema.items === 'object' ? ` of ${typeOf(schema.items as Schema)}` : ''
  const fields = schema.type === 'object' ? fieldsOf(schema) : ''
  return `${names.join(' or ')}${items}${fields}${limitsOf(schema)}`
}

const words: Readonly<Record<string, string>> = {
  integer: 'whole number',
  number: 'number',
  string: 'text',
  boolean: 'true or false',
  array: 'list',
  null: 'null',
}

/** What is inside an object that has no fixed place: an item of a list, a value of a record, one of several. */
const fieldsOf = ({ properties = {}, additionalProperties }: Schema): string => {
  const named = Object.entries(properties).map(([name, part]) => `${code(name)}: ${typeOf(part as Schema)}`)
  if (typeof additionalProperties === 'object') named.push(`any name: ${typeOf(additionalProperties as Schema)}`)
  return named.length > 0 ? ` (${named.join('; ')})` : ''
}

const limitsOf = (schema: Schema): string => {
  // Whole numbers always carry the largest safe integers; as limits they say nothing.
  const least = schema.minimum === Number.MIN_SAFE_INTEGER ? undefined : schema.minimum
  const most = schema.maximum === Number.MAX_SAFE_INTEGER ? undefined : schema.maximum
  const [low, high] = [least ?? schema.minLength ?? schema.minItems, most ?? schema.maxLength ?? schema.maxItems]
  const unit = schema.type === 'string' ? ' characters' : ''
  if (low !== undefined && high !== undefined) return `, ${numeral(low)} to ${numeral(high)}${unit}`
  if (low !== undefined) return `, at least ${numeral(low)}${unit}`
  return high === undefined ? '' : `, at most ${numeral(high)}${unit}`
}

const numeral = (value: number): string => value.toLocaleString('en-US')

const code = (text: string): string => `\`${cell(text)}\``

const cell = (text: string): string => text.replaceAll('|', '\\|').replaceAll('\n', ' ')

const page = (title: string, blocks: readonly string[]): string =>
  `${[`# ${title}`, '<!-- Made by npm run gen. Change the code, not this page. -->', ...blocks].join('\n\n')}\n`
