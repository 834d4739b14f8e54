// Text of others within our own lines: names, arguments, error messages. It can end no line, move no cursor and fake nothing.

const named: Readonly<Record<string, string>> = { '\n': '\\n', '\r': '\\r', '\t': '\\t' }

/** Every control, and what turns the direction of writing, becomes visible. */
export const plainText = (text: string): string =>
  text.replaceAll(
    // biome-ignore lint/suspicious/noControlCharactersInRegex: controls are what this is about.
    /[\u0000-\u001f\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g,
    (character) =>
      named[character] ??
      (character < '\u0100'
        ? `\\x${character.charCodeAt(0).toString(16).padStart(2, '0')}`
        : `\\u${character.charCodeAt(0).toString(16)}`),
  )

/** JSON on one line. JSON itself lets the 8-bit controls through, and a terminal could obey them. */
export const jsonLine = (value: unknown): string =>
  `${JSON.stringify(value, (_, inner) => (typeof inner === 'bigint' ? Number(inner) : inner)).replaceAll(
    /[\u007f-\u009f\u2028\u2029]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )}\n`
