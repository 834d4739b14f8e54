import { isMap, isScalar, LineCounter, type Node, parseDocument } from 'yaml'
import { ConfigInvalid } from './faults.ts'
import { isForbidden, type Layer, type Setting } from './layer.ts'
import { translateSeedNames } from './seed-names.ts'

const aliasesMax = 100
const depthMax = 20

/** A file of options. Every value remembers its line; what is written in the seeds' words is translated, with a note. */
export const readYaml = (text: string, path: string): Layer => {
  const lines = new LineCounter()
  const document = parseDocument(text, { lineCounter: lines, uniqueKeys: true, prettyErrors: false })
  const at = (offset: number) => {
    const { line, col } = lines.linePos(offset)
    return `${path}:${line}:${col}`
  }
  const [error] = document.errors
  // The library's own text can repeat the line, and with it a secret.
  if (error)
    throw new ConfigInvalid(`${at(error.pos[0])}: this is not YAML (${error.code.toLowerCase()})`, { cause: error })
  if (document.contents === null) return { settings: [], notes: [] }
  if (!isMap(document.contents))
    throw new ConfigInvalid(`${path}: a configuration is a list of names with their values`)

  const settings: Setting[] = []
  const walk = (node: Node | null, under: readonly string[], key: Node | undefined): void => {
    if (under.length > depthMax) throw new ConfigInvalid(`${path}: this goes deeper than any option`)
    if (isMap(node) && node.items.length > 0) {
      for (const pair of node.items) {
        const name = isScalar(pair.key) ? String(pair.key.value) : undefined
        const keyNode = pair.key as Node
        if (name === undefined || isForbidden(name))
          throw new ConfigInvalid(`${at(keyNode.range?.[0] ?? 0)}: this cannot be the name of an option`)
        walk(pair.value as Node | null, [...under, name], keyNode)
      }
      return
    }
    // An empty section says nothing: `jobs:` with everything below it commented out.
    if (node === null || (isScalar(node) && node.value === null) || isMap(node)) return
    const { line, col: column } = lines.linePos((node.range ?? key?.range)?.[0] ?? 0)
    const value: unknown = node.toJS(document, { maxAliasCount: aliasesMax })
    settings.push({ path: under, value, origin: { kind: 'file', path, line, column } })
  }
  walk(document.contents, [], undefined)
  return translateSeedNames(settings)
}
