// What a job wrote, made safe to look at (M09, M10). Its neighbour live.ts decides where the bytes go.
//
// I1  No control reaches the terminal but line feed, carriage return, tab and whole SGR sequences (colours).
// I2  Every other character stays as it is, byte by byte: valid UTF-8 stays valid, wherever the chunks are cut.
// I3  No line begins with our own mark, `millrace:`; it becomes `millrace\:`. A carriage return begins a line too.
// I4  Nothing is held back but a sequence or a character that is not complete yet, and never more than a few bytes of it.
// I5  A sequence that never ends hides nothing for long: a line break ends it, and so does its length.

export interface Sanitiser {
  /** What may be shown of these bytes. */
  write(bytes: Uint8Array): Uint8Array
  /** What was held back, when nothing more comes. */
  end(): Uint8Array
  /** Whether colours that the job switched on may still be on. */
  readonly isColoured: boolean
  /** Whether what follows would begin a line. */
  readonly isAtLineStart: boolean
}

export const ownMark = 'millrace:'

const esc = 0x1b
const bel = 0x07
const lineFeed = 0x0a
const carriageReturn = 0x0d
const tab = 0x09
const colon = 0x3a
const backslash = 0x5c
const markBytes = Buffer.from(ownMark)
/** Where the colon stands in our mark. */
const markEnd = markBytes.length - 1
/** Longest colour sequence that is passed on; the longest useful one has some forty bytes. */
const colourBytesMax = 64
const stringBytesMax = 65_536

type State = 'ground' | 'escape' | 'escapeIntermediate' | 'csi' | 'string' | 'stringEscape'

export const createSanitiser = (options: { readonly colours: boolean }): Sanitiser => {
  let state: State = 'ground'
  /** A colour sequence or a character of several bytes that is not complete yet. */
  const held = new Uint8Array(colourBytesMax + 4)
  let heldBytes = 0
  /** How many bytes the character in `held` is to have; 0 if none is begun. */
  let characterBytes = 0
  let isColourCandidate = false
  let sequenceBytes = 0
  let matched = 0
  let isAtLineStart = true
  let isColoured = false
  let out = Buffer.allocUnsafe(0)
  let used = 0

  const put = (byte: number) => {
    if (byte === lineFeed || byte === carriageReturn) {
      matched = 0
      isAtLineStart = true
    } else {
      if (matched === markEnd && byte === colon) out[used++] = backslash
      matched = matched >= 0 && matched < markEnd && byte === markBytes[matched] ? matched + 1 : -1
      isAtLineStart = false
    }
    out[used++] = byte
  }

  const putHeld = () => {
    for (let at = 0; at < heldBytes; at++) put(held[at] as number)
    heldBytes = 0
  }

  /** A colour has no width: it begins no line and is no part of a mark. */
  const putColour = () => {
    for (let at = 0; at < heldBytes; at++) out[used++] = held[at] as number
    isColoured = !isReset(held, heldBytes)
    heldBytes = 0
  }

  /** A character that turned out to be none: what could be taken for a C1 control goes, the rest stays as it is. */
  const putBroken = () => {
    for (let at = 0; at < heldBytes; at++) {
      const byte = held[at] as number
      if (byte < 0x80 || byte > 0x9f) put(byte)
    }
    heldBytes = 0
    characterBytes = 0
  }

  const enter = (next: State) => {
    state = next
    sequenceBytes = 0
  }

  const beginCsi = () => {
    enter('csi')
    isColourCandidate = options.colours
    held[0] = esc
    held[1] = 0x5b
    heldBytes = 2
  }

  const ground = (byte: number) => {
    if (byte === esc) enter('escape')
    else if (byte >= 0x80) beginCharacter(byte)
    else if (byte >= 0x20 ? byte !== 0x7f : byte === lineFeed || byte === tab || byte === carriageReturn) put(byte)
  }

  const beginCharacter = (byte: number) => {
    const length =
      byte >= 0xc2 && byte < 0xe0 ? 2 : byte >= 0xe0 && byte < 0xf0 ? 3 : byte >= 0xf0 && byte < 0xf5 ? 4 : 0
    if (length > 0) {
      held[0] = byte
      heldBytes = 1
      characterBytes = length
    } else if (byte > 0x9f) put(byte)
  }

  const continueCharacter = (byte: number) => {
    if (!isContinuation(held[0] as number, heldBytes, byte)) {
      putBroken()
      take(byte)
      return
    }
    held[heldBytes++] = byte
    if (heldBytes < characterBytes) return
    characterBytes = 0
    const isC1 = heldBytes === 2 && held[0] === 0xc2 && byte < 0xa0
    if (!isC1) {
      putHeld()
      return
    }
    heldBytes = 0
    // The 8-bit forms of ESC [, and of ESC P, X, ], ^ and _.
    if (byte === 0x9b) beginCsi()
    else if (byte === 0x90 || byte === 0x98 || byte >= 0x9d) enter('string')
  }

  const afterEscape = (byte: number) => {
    if (byte === 0x5b) beginCsi()
    else if (byte === 0x50 || byte === 0x58 || (byte >= 0x5d && byte <= 0x5f)) enter('string')
    else if (byte >= 0x20 && byte <= 0x2f) state = 'escapeIntermediate'
    else if (byte >= 0x30 && byte <= 0x7e) state = 'ground'
    else leave(byte)
  }

  const escapeIntermediate = (byte: number) => {
    sequenceBytes += 1
    if (byte >= 0x30 && byte <= 0x7e) state = 'ground'
    else if (byte < 0x20 || byte > 0x2f || sequenceBytes > colourBytesMax) leave(byte)
  }

  const csi = (byte: number) => {
    sequenceBytes += 1
    if (byte >= 0x40 && byte <= 0x7e) {
      state = 'ground'
      held[heldBytes++] = byte
      if (byte === 0x6d && isColourCandidate) putColour()
      heldBytes = 0
    } else if (byte < 0x20 || byte > 0x7e || sequenceBytes > stringBytesMax) {
      heldBytes = 0
      leave(byte)
    } else if (byte >= 0x30 && byte <= 0x3b && sequenceBytes < colourBytesMax) held[heldBytes++] = byte
    // A private mark (`ESC [ > 4 m` changes the keyboard) or an intermediate byte: another sequence, only ending alike.
    else isColourCandidate = false
  }

  const string = (byte: number, previous: number) => {
    sequenceBytes += 1
    const isEnd = byte === bel || byte === 0x18 || byte === 0x1a || (byte === 0x9c && previous === 0xc2)
    if (isEnd) state = 'ground'
    else if (byte === esc) state = 'stringEscape'
    else if (byte === lineFeed || sequenceBytes > stringBytesMax) leave(byte)
  }

  const leave = (byte: number) => {
    state = 'ground'
    take(byte)
  }

  /** ESC \ ends a string; any other escape ends it as well, and begins something of its own. */
  const stringEscape = (byte: number) => {
    if (byte === backslash) state = 'ground'
    else afterEscape(byte)
  }

  let previous = 0
  const take = (byte: number): void => {
    if (state === 'ground') {
      if (characterBytes > 0) continueCharacter(byte)
      else ground(byte)
    } else if (state === 'escape') afterEscape(byte)
    else if (state === 'escapeIntermediate') escapeIntermediate(byte)
    else if (state === 'csi') csi(byte)
    else if (state === 'string') string(byte, previous)
    else stringEscape(byte)
  }

  return {
    write: (bytes) => {
      // A colon can gain a backslash at most once in nine bytes, and what was held back comes on top.
      out = Buffer.allocUnsafe(bytes.length * 2 + held.length)
      used = 0
      for (let at = 0; at < bytes.length; at++) {
        // The long middle of a line: nothing is open, no mark can begin, so all printable ASCII is taken at once.
        if (matched < 0 && state === 'ground' && characterBytes === 0) {
          const end = plainEnd(bytes, at)
          if (end > at) out.set(bytes.subarray(at, end), used)
          used += end - at
          at = end
          if (at === bytes.length) break
        }
        const byte = bytes[at] as number
        take(byte)
        previous = byte
      }
      return out.subarray(0, used)
    },
    end: () => {
      out = Buffer.allocUnsafe(held.length * 2)
      used = 0
      if (characterBytes > 0) putBroken()
      heldBytes = 0
      state = 'ground'
      return out.subarray(0, used)
    },
    get isColoured() {
      return isColoured
    },
    get isAtLineStart() {
      return isAtLineStart
    },
  }
}

/** Where the printable ASCII that begins there ends. */
const plainEnd = (bytes: Uint8Array, from: number): number => {
  let at = from
  while (at < bytes.length) {
    const byte = bytes[at] as number
    if (byte < 0x20 || byte > 0x7e) break
    at += 1
  }
  return at
}

/** `ESC [ m` and `ESC [ 0 m`. Anything else is taken for a colour; resetting once too often costs nothing. */
const isReset = (sequence: Uint8Array, length: number): boolean =>
  length === 3 || (length === 4 && sequence[2] === 0x30)

/** Whether a byte may stand there, by the table of well-formed UTF-8: nothing overlong, no surrogates, nothing beyond U+10FFFF. */
const isContinuation = (lead: number, place: number, byte: number): boolean => {
  if (byte < 0x80 || byte > 0xbf) return false
  if (place > 1) return true
  if (lead === 0xe0) return byte >= 0xa0
  if (lead === 0xed) return byte <= 0x9f
  if (lead === 0xf0) return byte >= 0x90
  return lead !== 0xf4 || byte <= 0x8f
}
