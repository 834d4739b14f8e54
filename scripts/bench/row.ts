/** One line of a benchmark's outcome. */
export interface Row {
  readonly name: string
  readonly value: number
  readonly unit: string
  /** The value over that of the bare thing it is measured against, in the same run. */
  readonly ratio?: number
  /** What the ratio, or the value where there is none, must not pass: from above, or from below where more is better. */
  readonly target?: number
  readonly moreIsBetter?: true
  readonly ok?: boolean
}

/** A row as people read it. */
export const formatRow = ({ name, value, unit, ratio, target, moreIsBetter, ok }: Row): string =>
  [
    `${name}: ${value.toFixed(1)} ${unit}`,
    ratio === undefined ? '' : `${ratio.toFixed(2)}×`,
    target === undefined
      ? ''
      : `(target ${moreIsBetter ? '≥' : '≤'} ${target}${ratio === undefined ? ` ${unit}` : '×'})`,
    ok === undefined ? '' : ok ? 'ok' : 'MISSED',
  ]
    .filter((part) => part !== '')
    .join('  ')

export const median = (values: readonly number[]): number => {
  const sorted = [...values].sort((a, b) => a - b)
  const middle = sorted.length >> 1
  const upper = sorted[middle] ?? Number.NaN
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? Number.NaN) + upper) / 2
}

/** Rows as a Markdown table. */
export const table = (rows: readonly Row[]): string =>
  [
    '| what | value | ratio | target |',
    '| --- | --- | --- | --- |',
    ...rows.map(({ name, value, unit, ratio, target, moreIsBetter }) => {
      const figure = value >= 100 ? Math.round(value).toLocaleString('en-US') : value.toFixed(1)
      const bound = target === undefined ? '' : `at ${moreIsBetter ? 'least' : 'most'} ${target}`
      return `| ${name} | ${figure} ${unit} | ${ratio === undefined ? '' : ratio.toFixed(2)} | ${bound} |`
    }),
  ].join('\n')
