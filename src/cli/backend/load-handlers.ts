import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { Handler } from '../../worker/handlers.ts'
import { UsageInvalid } from '../faults.ts'

/** The functions that modules export, by their names. A name that two modules have is refused: nobody could tell which runs. */
export const loadHandlers = async (
  cwd: string,
  modules: readonly string[],
): Promise<Readonly<Record<string, Handler>>> => {
  const handlers = new Map<string, { readonly handler: Handler; readonly module: string }>()
  for (const module of modules) {
    for (const [name, handler] of Object.entries(await exportsOf(cwd, module))) {
      if (typeof handler !== 'function') continue
      const other = handlers.get(name)
      if (other) throw new UsageInvalid(`both ${other.module} and ${module} export a handler '${name}'`)
      handlers.set(name, { handler: handler as Handler, module })
    }
  }
  return Object.fromEntries([...handlers].map(([name, { handler }]) => [name, handler]))
}

const exportsOf = async (cwd: string, module: string): Promise<Readonly<Record<string, unknown>>> => {
  try {
    const loaded = (await import(pathToFileURL(resolve(cwd, module)).href)) as Record<string, unknown>
    // An object as the default export counts as its members.
    const { default: whole, ...named } = loaded
    return typeof whole === 'object' && whole !== null ? { ...whole, ...named } : named
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause)
    throw new UsageInvalid(`the handlers in ${module} cannot be loaded: ${reason}`, { cause })
  }
}
