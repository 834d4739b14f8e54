// Prints the clock that all processes of a machine share, line by line, at intervals as a person would see them come.
// Arguments: how many lines.

import { setTimeout as pause } from 'node:timers/promises'

const wanted = Number(process.argv[2] ?? '0')
// Until somebody watches.
await pause(300)
for (let line = 0; line < wanted; line++) {
  await pause(3 + (line % 7))
  process.stdout.write(`${process.hrtime.bigint()}\n`)
}
