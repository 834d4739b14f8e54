/** Enough for every safe integer, so that places sort as text the way their times sort as numbers. */
const timeDigits = 16

/** Where a message stands in its class: by time, then by job. */
export const placeOf = (notBefore: number, jobId: string, tail: number): string => {
  const whole = Math.min(Number.MAX_SAFE_INTEGER, Math.max(0, Math.ceil(notBefore)))
  return `${whole.toString().padStart(timeDigits, '0')}#${jobId}#${tail}`
}

/** The other way; undefined if it is not a place of ours. */
export const partsOfPlace = (place: string): { readonly jobId: string; readonly tail: number } | undefined => {
  const end = place.lastIndexOf('#')
  if (end <= timeDigits || place[timeDigits] !== '#') return undefined
  return { jobId: place.slice(timeDigits + 1, end), tail: Number(place.slice(end + 1)) }
}

/** The time in a place. A place that is not one of ours counts as due, so that somebody gets to see it. */
export const timeOfPlace = (place: string): number => Number(place.slice(0, timeDigits)) || 0
