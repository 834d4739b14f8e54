import type { Effective } from '../../config/sources.ts'
import type { CliContext } from '../context.ts'
import { exitCodes } from '../exit-codes.ts'
import { jsonLine, plainText } from '../render/plain-text.ts'
import { hidden } from '../render/secrets.ts'
import { type GlobalFlags, gatherSources } from '../settings.ts'

export interface ConfigArgs extends GlobalFlags {
  readonly action: 'check' | 'print'
}

/** What the configuration comes to, or everything that is wrong with it. */
export const run = async (context: CliContext, args: ConfigArgs): Promise<number> => {
  const sources = await gatherSources(context, args)
  const { checkSources, loadSources } = await import('../../config/sources.ts')
  if (args.action === 'print') {
    await print(context, args, loadSources(sources))
    return exitCodes.ok
  }
  const { originText } = await import('../../config/layer.ts')
  const checked = checkSources(sources)
  const notes = checked.ok ? checked.effective.notes : checked.notes
  if (args.quiet !== true && args.json !== true)
    for (const note of notes) await context.stderr.write(`millrace: ${plainText(note)}\n`)
  if (checked.ok) {
    const where = sources.file?.path ?? 'no file'
    if (args.json === true) await context.stdout.write(jsonLine({ ok: true, file: sources.file?.path, notes }))
    else if (args.quiet !== true) await context.stdout.write(`the configuration is good (${plainText(where)})\n`)
    return exitCodes.ok
  }
  for (const { key, value, reason, origin } of checked.problems) {
    const from = originText(origin)
    const text = `${from}: ${key}${value === undefined ? '' : ` = ${value}`}: ${reason}`
    await context.stdout.write(args.json === true ? jsonLine({ key, value, reason, from }) : `${plainText(text)}\n`)
  }
  return exitCodes.configuration
}

/** Every option with its value and where that comes from; what is secret is named and not shown. */
const print = async (context: CliContext, args: ConfigArgs, effective: Effective): Promise<void> => {
  const { originText } = await import('../../config/layer.ts')
  const { isSecretKey } = await import('../../config/sources.ts')
  for (const [path, value] of leaves(effective.options, [])) {
    const key = path.join('.')
    const shown = isSecretKey(key) && !isEmpty(value) ? hidden : safe(value, isSecretKey)
    const from = originText(effective.originOf(path))
    const line = `${key} = ${JSON.stringify(shown)}  # ${from}`
    await context.stdout.write(args.json === true ? jsonLine({ key, value: shown, from }) : `${plainText(line)}\n`)
  }
}

const isEmpty = (value: unknown): boolean => value === undefined || (Array.isArray(value) && value.length === 0)

/** Options that are no sections. A list is one value. */
const leaves = (value: unknown, path: readonly string[]): readonly (readonly [readonly string[], unknown])[] =>
  isSection(value) && (path.length === 0 || Object.keys(value).length > 0)
    ? Object.entries(value).flatMap(([name, part]) => leaves(part, [...path, name]))
    : [[path, value]]

const isSection = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** Lists can hold secrets inside, such as the keys that sign. */
const safe = (value: unknown, isSecret: (key: string) => boolean): unknown => {
  if (Array.isArray(value)) return value.map((part) => safe(part, isSecret))
  if (!isSection(value)) return value
  return Object.fromEntries(
    Object.entries(value).map(([name, part]) => [name, isSecret(name) ? hidden : safe(part, isSecret)]),
  )
}
