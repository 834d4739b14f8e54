import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { createSanitiser } from '../../src/cli/render/sanitise.ts'

const clean = (bytes: Uint8Array | string, colours = true, cuts: readonly number[] = []): Buffer => {
  const whole = Buffer.from(bytes)
  const sanitiser = createSanitiser({ colours })
  const parts: Uint8Array[] = []
  let from = 0
  for (const cut of [...cuts, whole.length]) {
    parts.push(Buffer.from(sanitiser.write(whole.subarray(from, cut))))
    from = cut
  }
  return Buffer.concat([...parts, sanitiser.end()])
}
const shown = (text: string, colours = true): string => clean(text, colours).toString()

/** Anything a terminal could obey, besides line feed, carriage return, tab and colours. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: controls are what this is about.
const obeyed = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f]/u
// biome-ignore lint/suspicious/noControlCharactersInRegex: colours begin with a control.
const withoutColours = (text: string): string => text.replaceAll(/\u001b\[[0-9:;]*m/g, '')

/** Bytes that are likely to be trouble: pieces of sequences, of characters, of our mark, and anything at all. */
const nastyPiece = fc.oneof(
  fc
    .constantFrom(
      '\x1b',
      '\x1b[',
      '\x1b[31m',
      '\x1b[0m',
      '\x1b[2J',
      '\x1b[1;1H',
      '\x1b[?25l',
      '\x1b[>4;2m',
      '\x1b]0;title',
      '\x1b]52;c;aGk=',
      '\x07',
      '\x1b\\',
      '\x1bP',
      '\x1b_',
      '\x1bc',
      '\x1b(B',
      '\x9b',
      '\x9d',
      '\u009b31m',
      '\r',
      '\n',
      '\t',
      '\b',
      '\x7f',
      '\0',
      'millrace:',
      'mill',
      'race',
      ':',
      'é',
      '€',
      '😀',
      ';',
      '8',
      'm',
      '[',
      ']',
      '\\',
    )
    .map((text) => Buffer.from(text)),
  fc.uint8Array({ maxLength: 4 }).map((bytes) => Buffer.from(bytes)),
  fc
    .constantFrom([0xc2], [0x9b], [0xe2, 0x82], [0xf0, 0x9f], [0xe0, 0x82, 0x9b], [0xc0, 0x9b])
    .map((bytes) => Buffer.from(bytes)),
)
const nasty = fc.array(nastyPiece, { maxLength: 40 }).map((parts) => Buffer.concat(parts))

describe('what a job wrote, on a terminal', () => {
  test.each([
    ['plain text', 'hello\n', 'hello\n'],
    ['characters of other scripts and pictures', 'naïve – 日本 😀\n', 'naïve – 日本 😀\n'],
    ['colours', '\x1b[1;31mred\x1b[0m \x1b[38:2::1:2:3mx\x1b[m\n', '\x1b[1;31mred\x1b[0m \x1b[38:2::1:2:3mx\x1b[m\n'],
    ['tabs and carriage returns', 'a\tb\r10 %\r20 %\r\n', 'a\tb\r10 %\r20 %\r\n'],
    ['the clipboard (OSC 52)', 'a\x1b]52;c;cm0gLXJm\x07b', 'ab'],
    ['the clipboard with the other end', 'a\x1b]52;c;cm0gLXJm\x1b\\b', 'ab'],
    ['links (OSC 8)', '\x1b]8;;http://evil.example\x1b\\click\x1b]8;;\x1b\\', 'click'],
    ['titles', '\x1b]0;owned\x07x\x1b]2;owned\x1b\\y', 'xy'],
    ['cursor moves and erasing', 'a\x1b[2J\x1b[1;1H\x1b[A\x1b[Kb', 'ab'],
    ['modes', '\x1b[?1049h\x1b[?25lx\x1b=\x1b>', 'x'],
    ['a reset and other character sets', '\x1bcx\x1b(0y\x1b#8', 'xy'],
    ['device strings and private ones', 'a\x1bP1$q"p\x1b\\b\x1b_secret\x1b\\c\x1b^x\x1b\\d\x1bXs\x1b\\e', 'abcde'],
    ['8-bit sequences', 'a\u009b2Jb\u009d0;t\u009cc\u0090x\u009cd\u0085e', 'abcde'],
    ['sequences that only end like a colour', 'a\x1b[>4;2mb\x1b[?4mc\x1b[ 1md', 'abcd'],
    ['bells, backspaces, nulls, delete', 'a\x07\b\0\x7f\v\fb', 'ab'],
    ['a title that never ends', 'a\x1b]0;no end\nb', 'a\nb'],
    ['a sequence that is cut by another', '\x1b[3\x1b[31mx', '\x1b[31mx'],
    ['a sequence that ends with the output', 'a\x1b[31', 'a'],
  ])('M09 %s', (_, given, expected) => {
    expect(shown(given)).toBe(expected)
  })

  test('M09 raw bytes that some terminals take for controls go, other broken characters stay', () => {
    expect(clean(Buffer.from([0x61, 0x9b, 0x32, 0x4a, 0x62]))).toEqual(Buffer.from('a2Jb'))
    expect(clean(Buffer.from([0xe9, 0x74, 0xe9]))).toEqual(Buffer.from([0xe9, 0x74, 0xe9]))
    // Overlong forms of U+009B, which a careless terminal would take for it.
    expect(clean(Buffer.from([0xe0, 0x82, 0x9b, 0x61]))).toEqual(Buffer.from([0xe0, 0x61]))
    expect(clean(Buffer.from([0xc0, 0x9b, 0x61]))).toEqual(Buffer.from([0xc0, 0x61]))
  })

  test('M09 without colours there are none', () => {
    expect(shown('\x1b[31mred\x1b[0m', false)).toBe('red')
  })

  test('M09 nothing a terminal could obey is left, wherever the chunks are cut', () => {
    fc.assert(
      fc.property(nasty, fc.array(fc.nat(200), { maxLength: 6 }), fc.boolean(), (bytes, places, colours) => {
        const cuts = [...new Set(places.map((place) => place % (bytes.length + 1)))].sort((a, b) => a - b)
        const whole = clean(bytes, colours)
        expect(clean(bytes, colours, cuts)).toEqual(whole)
        const text = whole.toString()
        expect((colours ? withoutColours(text) : text).match(obeyed)).toBeNull()
      }),
      { numRuns: 2_000 },
    )
  })

  test('M09 doing it twice changes nothing more but a mark that came to be', () => {
    fc.assert(
      fc.property(nasty, (bytes) => {
        const once = clean(bytes)
        expect(clean(once)).toEqual(once)
      }),
      { numRuns: 1_000 },
    )
  })

  test('M09 text without controls stays as it is, byte by byte, wherever it is cut', () => {
    const text = fc
      .string({ unit: 'binary', maxLength: 60 })
      .map((raw) => raw.replaceAll(/[\p{Cc}\p{Cs}]/gu, '\n'))
      .filter((raw) => !raw.includes('millrace:'))
    fc.assert(
      fc.property(text, fc.nat(100), (raw, place) => {
        const bytes = Buffer.from(raw)
        expect(clean(bytes, true, [place % (bytes.length + 1)])).toEqual(bytes)
      }),
      { numRuns: 1_000 },
    )
  })

  test('M09 a sequence that never ends hides a bounded part of what follows', () => {
    const hidden = clean(`\x1b]0;${'x'.repeat(200_000)}`)
    expect(hidden.length).toBeGreaterThan(100_000)
  })

  test.each([
    ['at the beginning', 'millrace: job done\n', 'millrace\\: job done\n'],
    ['behind a line break', 'a\nmillrace: job done\n', 'a\nmillrace\\: job done\n'],
    ['behind a carriage return', 'a\rmillrace: job done', 'a\rmillrace\\: job done'],
    ['behind a colour', '\x1b[90mmillrace: job done', '\x1b[90mmillrace\\: job done'],
    ['with something invisible in it', 'mill\x1b[2Jra\x07ce\x1b[1m: x', 'millrace\x1b[1m\\: x'],
  ])('M10 our own mark cannot be written by a job: %s', (_, given, expected) => {
    expect(shown(given)).toBe(expected)
  })

  test('M10 no line of any output begins with our mark', () => {
    fc.assert(
      fc.property(nasty, fc.nat(200), (bytes, place) => {
        const text = withoutColours(clean(bytes, true, [place % (bytes.length + 1)]).toString('latin1'))
        expect(text.split(/[\r\n]/).filter((line) => line.startsWith('millrace:'))).toEqual([])
      }),
      { numRuns: 2_000 },
    )
  })

  test('M10 the mark elsewhere in a line is left alone', () => {
    expect(shown('see millrace: x; millracer: y\nmillrace is\n')).toBe('see millrace: x; millracer: y\nmillrace is\n')
  })
})
