// Durations, sizes and numbers as people write them. Each parser is made for one flag, which its complaint names.

import { UsageInvalid } from '../faults.ts'

const unitsMs: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
  w: 604_800_000,
}

/** `30s`, `5m`, `1h30m`, `1.5h`; undefined if it is none. */
export const durationMs = (text: string): number | undefined => {
  if (text === '0') return 0
  const parts = [...text.matchAll(/(\d+(?:\.\d+)?)(ms|[smhdw])/g)]
  // Whatever stands between the parts, or alone, is not part of any duration.
  if (parts.length === 0 || parts.map(([part]) => part).join('') !== text) return undefined
  let total = 0
  for (const [, amount = '', unit = ''] of parts) total += Number(amount) * (unitsMs[unit] as number)
  const ms = Math.round(total)
  return Number.isSafeInteger(ms) ? ms : undefined
}

export const parseDuration =
  (flag: string, { min = 0, max = 2 ** 32 - 1 }: { readonly min?: number; readonly max?: number } = {}) =>
  (text: string): number => {
    const ms = durationMs(text)
    if (ms === undefined)
      throw new UsageInvalid(`${flag} takes a duration such as 30s, 5m, 2h or 1h30m`, { field: flag })
    if (ms < min || ms > max)
      throw new UsageInvalid(`${flag} is to be between ${min} ms and ${max} ms, and ${text} is not`, { field: flag })
    return ms
  }

const unitsBytes: Readonly<Record<string, number>> = {
  '': 1,
  k: 1_000,
  m: 1_000_000,
  g: 1_000_000_000,
  ki: 1_024,
  mi: 1_024 ** 2,
  gi: 1_024 ** 3,
}

/** `512`, `64k`, `10MB`, `256KiB`; undefined if it is none. */
export const sizeBytes = (text: string): number | undefined => {
  const [, amount, unit = ''] = /^(\d+(?:\.\d+)?)([kmg]i?)?b?$/i.exec(text) ?? []
  if (amount === undefined) return undefined
  const bytes = Math.round(Number(amount) * (unitsBytes[unit.toLowerCase()] as number))
  return Number.isSafeInteger(bytes) ? bytes : undefined
}

export const parseSize =
  (flag: string) =>
  (text: string): number => {
    const bytes = sizeBytes(text)
    if (bytes === undefined)
      throw new UsageInvalid(`${flag} takes a size such as 512, 64k, 10MB or 256KiB`, { field: flag })
    return bytes
  }

export const parseWhole =
  (flag: string, min: number, max: number) =>
  (text: string): number => {
    const value = /^\d{1,16}$/.test(text) ? Number(text) : Number.NaN
    if (!(value >= min && value <= max))
      throw new UsageInvalid(`${flag} takes a whole number from ${min} to ${max}`, { field: flag })
    return value
  }

export const parseFactor =
  (flag: string) =>
  (text: string): number => {
    const value = /^\d+(?:\.\d+)?x?$/.test(text) ? Number.parseFloat(text) : Number.NaN
    if (!(value > 0 && value <= 1_000))
      throw new UsageInvalid(`${flag} takes a number of times up to 1000, such as 2 or 0.5`, { field: flag })
    return value
  }
