// What a machine can check of the house style in the text of one file. Each rule is a pure function from a file to the
// sentences that say what is wrong with it. Patterns are spelled so that this file does not break its own rules.

export interface SourceFile {
  /** From the checkout's top, with forward slashes. */
  readonly path: string
  readonly text: string
}

export type SourceRule = (file: SourceFile) => readonly string[]

const linesMax = 300

export const isShort: SourceRule = ({ path, text }) => {
  const lines = text.trimEnd().split('\n').length
  return lines > linesMax ? [`${path} has ${lines} lines; which noun is hiding in it?`] : []
}

/** Expected failures are faults, impossible things are assertions; a simulation may fail as it likes. */
export const throwsFaultsOnly: SourceRule = ({ path, text }) =>
  path === 'src/kernel/assert.ts' || path.startsWith('src/sim/')
    ? []
    : found(path, codeOf(text), /\bthrow\s+(?:new\s+)?(?:Error|TypeError|RangeError)\b/g, 'throws a bare error')

/** What a file may use of the process all the same, because it changes nothing in it. */
const harmless: Readonly<Record<string, RegExp>> = {
  // The owner of a data directory is known by its process and user; a signal of 0 only asks whether that process is there.
  'src/tables/lmdb/host.ts': /\bprocess\.(?:pid\b|getuid\?\.\(\)|kill\(\w+, 0\))/g,
  // It starts the same program once more, and the process that it writes to is that one.
  'src/tables/lmdb/doctor.ts': /\bprocess\.(?:execPath\b|stdout\.write\b)/g,
  // A signal to a group of programs that jobs started; there is no other way to reach a group.
  'src/worker/process-group.ts': /\bprocess\.kill\(-\w+, \w+\)/g,
}

/** The process belongs to cli, so that a runtime can be started twice in one process. */
export const leavesProcessAlone: SourceRule = ({ path, text }) => {
  if (path.startsWith('src/cli/')) return []
  const allowed = harmless[path]
  const code = allowed ? codeOf(text).replaceAll(allowed, '') : codeOf(text)
  return found(path, code, /(?<![\w$.])(?:globalThis\.)?process\s*(?:\?\.|[.[])/g, 'touches the process')
}

/** Reads comments too: that is where they stand. */
export const numbersItsPromises: SourceRule = ({ path, text }) =>
  found(path, text, /\b(?:TO{1}DO|FIX{1}ME)\b(?!\s*\(?#\d+)/g, 'promises something without an issue number')

export const runsEveryTest: SourceRule = ({ path, text }) =>
  found(
    path,
    codeOf(text),
    /\b(?:test|it|describe|suite)(?:\.\w+)*\.(?:skip|only|todo|skipIf|runIf)\b/g,
    'leaves a test out',
  )

export const exportsByName: SourceRule = ({ path, text }) =>
  found(path, codeOf(text), /^\s*export\s+default\b|\bas\s+default\b/gm, 'has a default export')

/** Where each fault class says its code, in the order of the file. */
export const faultCodesOf = (text: string): readonly string[] =>
  [...codeOf(text, 'keep strings').matchAll(/\breadonly\s+code(?:\s*:[^=\n]+)?\s*=\s*['"](\w+)['"]/g)].map(
    ([, code = '']) => code,
  )

/** Codes of classes against the codes of the catalogues and the text of docs/faults.md. */
export const faultViolations = (
  classes: readonly string[],
  catalogues: readonly string[],
  page: string,
): readonly string[] => [
  ...repeated(classes).map((code) => `${code} is the code of two classes`),
  ...repeated(catalogues).map((code) => `${code} is in the catalogues twice`),
  ...classes.filter((code) => !catalogues.includes(code)).map((code) => `${code} is in no catalogue`),
  ...catalogues.filter((code) => !classes.includes(code)).map((code) => `${code} is the code of no class`),
  ...classes.filter((code) => !page.includes(`### ${code}\n`)).map((code) => `${code} is not in docs/faults.md`),
]

/** An address in the lock file would tie every clone to one registry. */
export const lockViolations = (lock: string): readonly string[] =>
  found('package-lock.json', lock, /"resolved"/g, 'names a download address')

const repeated = (codes: readonly string[]): readonly string[] => [
  ...new Set(codes.filter((code, at) => codes.indexOf(code) !== at)),
]

const found = (path: string, text: string, pattern: RegExp, what: string): readonly string[] =>
  [...text.matchAll(pattern)].map(({ index }) => `${path}:${text.slice(0, index).split('\n').length} ${what}`)

/**
 * The text without comments and, unless kept, without what stands in plain quotes; template literals stay, as they hold
 * code. Lines stay where they are.
 */
const codeOf = (text: string, strings: 'keep strings' | 'drop strings' = 'drop strings'): string =>
  text.replaceAll(
    /(?<comment>\/\*[\s\S]*?\*\/|\/\/[^\n]*)|(?<plain>'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*")|`(?:\\.|[^`\\])*`/g,
    (match, comment: string | undefined, plain: string | undefined) => {
      if (comment !== undefined) return match.replaceAll(/[^\n]/g, ' ')
      return plain !== undefined && strings === 'drop strings' ? "''" : match
    },
  )
