// How wide text is on a terminal, and how it is cut to fit.

/** Columns of one character: none for what is put upon the one before, two for the wide ones of East Asia and pictures. */
const columnsOf = (character: string): number => {
  if (/^[\p{Mn}\p{Me}\p{Cf}]/u.test(character)) return 0
  return /^[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\ua960-\ua97f\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff01-\uff60\uffe0-\uffe6\u{1f300}-\u{1faff}\u{20000}-\u{3fffd}]/u.test(
    character,
  )
    ? 2
    : 1
}

export const widthOf = (text: string): number => {
  let width = 0
  for (const character of text) width += columnsOf(character)
  return width
}

/** At most so wide, with an ellipsis where something is missing. */
export const cutTo = (text: string, columns: number): string => {
  if (text.length <= columns && widthOf(text) <= columns) return text
  if (columns < 1) return ''
  let width = 0
  let kept = ''
  for (const character of text) {
    const next = width + columnsOf(character)
    if (next > columns - 1) break
    kept += character
    width = next
  }
  return `${kept}…`
}

export const padTo = (text: string, columns: number): string => text + ' '.repeat(Math.max(0, columns - widthOf(text)))

/** The lines a terminal of that width shows, so that we know how many they are. Colours in between have no width. */
export const wrapTo = (line: string, columns: number): readonly string[] => {
  const lines: string[] = []
  let current = ''
  let width = 0
  // biome-ignore lint/suspicious/noControlCharactersInRegex: colours begin with a control.
  for (const [part] of line.matchAll(/\u001b\[[0-9;:]*m|[\s\S]/gu)) {
    const own = part.startsWith('\u001b') ? 0 : part === '\t' ? 8 - (width % 8) : columnsOf(part)
    if (width + own > columns && width > 0) {
      lines.push(current)
      current = ''
      width = 0
    }
    current += part
    width += own
  }
  return [...lines, current]
}
