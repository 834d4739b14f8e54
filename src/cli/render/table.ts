import type { Colour, Paint } from './colours.ts'
import { cutTo, padTo, widthOf } from './width.ts'

export interface Column<Row> {
  readonly title: string
  readonly text: (row: Row) => string
  readonly colour?: (row: Row) => Colour | undefined
  /** The one that gives way when the terminal is narrow. */
  readonly gives?: true
}

const gap = 2
const givingMin = 8

/** Rows under their titles. `columns` is undefined where nothing needs to fit: then nothing is cut. */
export const tableLines = <Row>(
  columns: readonly Column<Row>[],
  rows: readonly Row[],
  paint: Paint,
  columnsMax: number | undefined,
): readonly string[] => {
  const cells = rows.map((row) => columns.map(({ text }) => text(row)))
  const natural = columns.map(({ title }, at) =>
    Math.max(widthOf(title), ...cells.map((row) => widthOf(row[at] ?? ''))),
  )
  const total = natural.reduce((sum, width) => sum + width + gap, -gap)
  const over = columnsMax === undefined ? 0 : Math.max(0, total - columnsMax)
  const widths = natural.map((width, at) => (columns[at]?.gives ? Math.max(givingMin, width - over) : width))
  const line = (texts: readonly string[], painted: (text: string, at: number) => string) =>
    texts
      .map((text, at) => {
        const fitted = columnsMax === undefined ? text : cutTo(text, widths[at] ?? 0)
        const isLast = at === texts.length - 1
        return painted(isLast ? fitted : padTo(fitted, widths[at] ?? 0), at)
      })
      .join(' '.repeat(gap))
  return [
    line(
      columns.map(({ title }) => title),
      (text) => paint('bold', text),
    ),
    ...cells.map((texts, index) =>
      line(texts, (text, at) => {
        const colour = columns[at]?.colour?.(rows[index] as Row)
        return colour === undefined ? text : paint(colour, text)
      }),
    ),
  ]
}
