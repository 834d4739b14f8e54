// Whether a regular expression can take exponential time: a repetition inside a repetition is the usual way. Coarse on purpose:
// what it accepts is safe, what it refuses can be written more simply.

/** The deepest nesting of unbounded repetitions in a pattern. 1 is linear or quadratic at worst. */
export const starHeight = (pattern: string): number => {
  const open: number[] = [0]
  let worst = 0
  let last = 0
  for (let at = 0; at < pattern.length; at++) {
    const sign = pattern[at]
    if (sign === '\\') {
      at += 1
      last = 0
    } else if (sign === '[') {
      at = endOfClass(pattern, at)
      last = 0
    } else if (sign === '(') open.push(0)
    else if (sign === ')') {
      last = open.pop() ?? 0
      open[open.length - 1] = Math.max(open.at(-1) ?? 0, last)
    } else if (sign === '*' || sign === '+' || isUnbounded(pattern, at)) {
      const height = last + 1
      worst = Math.max(worst, height)
      open[open.length - 1] = Math.max(open.at(-1) ?? 0, height)
    } else if (sign !== '?' && sign !== '|') last = 0
  }
  return worst
}

const isUnbounded = (pattern: string, at: number): boolean => /^\{\d+,\}/.test(pattern.slice(at, at + 8))

const endOfClass = (pattern: string, from: number): number => {
  let at = from + 1
  if (pattern[at] === '^') at += 1
  for (; at < pattern.length && pattern[at] !== ']'; at++) if (pattern[at] === '\\') at += 1
  return at
}

/** The regular expressions written in a source text, comments and strings aside as far as one line tells. */
export const regexLiterals = (text: string): readonly string[] =>
  text
    .split('\n')
    .filter((line) => !/^\s*(\/\/|\*|\/\*)/.test(line))
    .flatMap((line) => [
      ...line.matchAll(
        /(?<=[=(,:!&|?[]\s*|return )\/((?:\\.|\[(?:\\.|[^\]\\])*\]|[^/\\\n[])+)\/[a-z]*(?=[\s).,;:\]]|$)/g,
      ),
    ])
    .map(([, pattern = '']) => pattern)
