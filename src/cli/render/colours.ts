import type { Output } from '../context.ts'

const codes = { red: 31, green: 32, yellow: 33, blue: 34, cyan: 36, grey: 90, bold: 1 } as const
export type Colour = keyof typeof codes

/** Paints text, or leaves it as it is. */
export type Paint = (colour: Colour, text: string) => string

export const colourReset = '\x1b[0m'

export const createPaint = (enabled: boolean): Paint =>
  enabled ? (colour, text) => `\x1b[${codes[colour]}m${text}${colourReset}` : (_, text) => text

/** Whether we colour what goes there: as the flags say, else as the usual variables say, else if it is a terminal. */
export const wantsColour = (
  output: Pick<Output, 'isTerminal'>,
  env: Readonly<Record<string, string | undefined>>,
  flag: boolean | undefined,
): boolean => {
  if (flag !== undefined) return flag
  if (env['NO_COLOR'] !== undefined && env['NO_COLOR'] !== '') return false
  if (env['FORCE_COLOR'] !== undefined && env['FORCE_COLOR'] !== '' && env['FORCE_COLOR'] !== '0') return true
  return output.isTerminal && env['TERM'] !== 'dumb'
}

export const stateColours: Readonly<Record<string, Colour>> = {
  SCHEDULED: 'blue',
  RUNNING: 'cyan',
  COMPLETED: 'green',
  FAILED: 'red',
  CANCELLED: 'yellow',
}
