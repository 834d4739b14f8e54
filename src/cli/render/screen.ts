// Where bytes of a job and lines of our own meet on one terminal, or on two pipes.
//
// I1  A job's stdout goes to stdout and its stderr to stderr, in the order of the log.
// I2  Our own lines go to stderr, begin with `millrace:`, and always begin a line; nothing of a job begins so (sanitise.ts).
// I3  With `raw` the job's bytes are written exactly as they are, and nothing of ours stands between them.

import type { StreamName } from '../../log/event.ts'
import type { Output } from '../context.ts'
import type { OutputEvent } from '../log-event.ts'
import { colourReset, createPaint } from './colours.ts'
import { plainText } from './plain-text.ts'
import { createSanitiser, ownMark } from './sanitise.ts'
import { cutTo } from './width.ts'

export interface Screen {
  output(event: OutputEvent): Promise<void>
  /** One line of our own. */
  say(text: string): Promise<void>
  /** A line that the next one replaces; only ever seen on a terminal. */
  status(text: string): Promise<void>
  /** What was held back, colours off, status gone. */
  close(): Promise<void>
}

export interface ScreenOptions {
  readonly raw: boolean
  /** Whether a job's own colours are passed on. */
  readonly jobColours: boolean
  /** Whether we colour: stderr of a job, and our own lines. */
  readonly ownColours: boolean
  readonly quiet: boolean
}

const stderrColour = '\x1b[31m'
const clearLine = '\r\x1b[K'

export const createScreen = (
  outputs: { readonly stdout: Output; readonly stderr: Output },
  options: ScreenOptions,
): Screen => {
  const sanitisers = {
    stdout: createSanitiser({ colours: options.jobColours }),
    stderr: createSanitiser({ colours: options.jobColours }),
  }
  const paint = createPaint(options.ownColours)
  const isShared = outputs.stdout.isTerminal && outputs.stderr.isTerminal
  /** Whether the cursor that `stderr` writes at stands at the beginning of a line. */
  let isAtLineStart = true
  let isStatusShown = false

  const clearStatus = async () => {
    if (!isStatusShown) return
    isStatusShown = false
    await outputs.stderr.write(clearLine)
  }

  const write = async (stream: StreamName, bytes: Uint8Array) => {
    if (bytes.length === 0) return
    await clearStatus()
    await outputs[stream].write(bytes)
    const isOurs = stream === 'stderr' || isShared
    if (isOurs) isAtLineStart = sanitisers[stream].isAtLineStart
  }

  const freshLine = async () => {
    await clearStatus()
    const colouredBy = (['stdout', 'stderr'] as const).filter((stream) => sanitisers[stream].isColoured)
    // Colours that a job left on could hide what we say.
    if (colouredBy.includes('stderr') || (isShared && colouredBy.length > 0)) await outputs.stderr.write(colourReset)
    if (!isAtLineStart) await outputs.stderr.write('\n')
    isAtLineStart = true
  }

  return {
    output: async ({ stream, bytes }) => {
      if (options.raw) {
        await outputs[stream].write(bytes)
        return
      }
      const sanitiser = sanitisers[stream]
      const isTold = options.ownColours && stream === 'stderr' && !sanitiser.isColoured
      const safe = sanitiser.write(bytes)
      const end = sanitiser.isColoured ? '' : colourReset
      await write(
        stream,
        isTold && safe.length > 0 ? Buffer.concat([Buffer.from(stderrColour), safe, Buffer.from(end)]) : safe,
      )
    },
    say: async (text) => {
      if (options.quiet || options.raw) return
      await freshLine()
      await outputs.stderr.write(`${paint('grey', `${ownMark} ${plainText(text)}`)}\n`)
    },
    status: async (text) => {
      if (options.quiet || options.raw || !outputs.stderr.isTerminal || !isAtLineStart) return
      isStatusShown = true
      // One column stays free: in the last one, terminals differ in where the cursor is.
      await outputs.stderr.write(`${clearLine}${paint('grey', cutTo(plainText(text), outputs.stderr.columns - 1))}`)
    },
    close: async () => {
      if (options.raw) return
      for (const stream of ['stdout', 'stderr'] as const) {
        await write(stream, sanitisers[stream].end())
        if (sanitisers[stream].isColoured) await outputs[stream].write(colourReset)
      }
      await clearStatus()
    },
  }
}
