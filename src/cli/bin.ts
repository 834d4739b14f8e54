// Where the process begins and ends. Everything else is told what it needs (style T5).

import { exitCodes } from './exit-codes.ts'
import { failureOf } from './failure.ts'
import { main } from './main.ts'

/** What nobody expected: say it in one line and end, because nobody knows what state we are in (L02). */
const fatal = (error: unknown): void => {
  const { line } = failureOf(error, process.env['MILLRACE_DEBUG'] === '1')
  process.stderr.write(line, () => process.exit(exitCodes.internal))
}
process.on('uncaughtException', fatal)
process.on('unhandledRejection', fatal)

/** As long as there is no context, nobody else notices that `head` has seen enough of the help. */
const closed = (error: NodeJS.ErrnoException): void => {
  if (error.code === 'EPIPE') process.exit(exitCodes.pipeClosed)
  fatal(error)
}
process.stdout.on('error', closed)

const exit = await main({
  argv: process.argv.slice(2),
  env: process.env,
  columns: process.stdout.isTTY ? process.stdout.columns : undefined,
  print: (text) => void process.stdout.write(text),
  complain: (text) => void process.stderr.write(text),
  context: async () => {
    const context = (await import('./wire.ts')).createContext()
    process.stdout.off('error', closed)
    return context
  },
})

// A pipe takes what it is given only little by little: the last bytes are waited for, open sockets are not.
const flushed = (stream: NodeJS.WriteStream) =>
  new Promise<void>((resolve) => {
    if (stream.destroyed) resolve()
    else stream.write('', () => resolve())
  })
await Promise.all([flushed(process.stdout), flushed(process.stderr)])
process.exit(exit)
