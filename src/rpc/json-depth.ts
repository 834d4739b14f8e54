const quote = 0x22
const backslash = 0x5c
const envelopeBytes = 5

/**
 * How deep JSON is nested, told from its bytes before anything parses them, in pieces as they arrive. Text that is no JSON may
 * give any answer: the parser refuses it. `enveloped`: each message has five bytes before it that say how long it is.
 */
export const createDepthScan = (form: 'bare' | 'enveloped'): ((bytes: Uint8Array) => number) => {
  let depth = 0
  let deepest = 0
  let inText = false
  let isEscaped = false
  /** Bytes of the envelope that are still to come, the length they have told so far, and bytes of its message to come. */
  let head = form === 'enveloped' ? envelopeBytes : 0
  let length = 0
  let left = form === 'enveloped' ? 0 : Number.POSITIVE_INFINITY

  const scan = (byte: number) => {
    if (inText) {
      if (isEscaped) isEscaped = false
      else if (byte === backslash) isEscaped = true
      else if (byte === quote) inText = false
    } else if (byte === quote) inText = true
    // { and [ differ in one bit, and so do } and ].
    else if ((byte & 0xdf) === 0x5b) deepest = Math.max(deepest, ++depth)
    else if ((byte & 0xdf) === 0x5d) depth -= 1
  }
  const openMessage = () => {
    left = length
    depth = 0
    inText = false
    isEscaped = false
  }
  return (bytes) => {
    for (const byte of bytes) {
      if (left > 0) {
        scan(byte)
        left -= 1
      } else {
        // The first byte of the five is a set of flags.
        length = head === envelopeBytes ? 0 : length * 256 + byte
        head -= 1
        if (head === 0) openMessage()
      }
      if (left === 0 && head === 0) head = envelopeBytes
    }
    return deepest
  }
}
