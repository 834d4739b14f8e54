// Prints so many bytes of a kind as fast as the pipe takes them, and their hash to the file that is named. Arguments: kind,
// megabytes, file.

import { createHash } from 'node:crypto'
import { writeFileSync, writeSync } from 'node:fs'
import { createSeededRandom } from '../../src/sim/seeded-random.ts'

const megabyte = 1_000_000
const [kind = 'lines', megabytes = '1', file = ''] = process.argv.slice(2)

const blockOf = (): Buffer => {
  if (kind === 'binary') return Buffer.from(createSeededRandom(kind).bytes(megabyte))
  if (kind === 'line') return Buffer.alloc(megabyte, 'one line that does not end, ')
  return Buffer.from(
    Array.from({ length: megabyte / 100 }, (_, index) => `${`line ${index} `.padEnd(99, 'of text ')}\n`).join(''),
  )
}

const block = blockOf()
const hash = createHash('sha256')
for (let left = Number(megabytes); left > 0; left--) {
  hash.update(block)
  for (let from = 0; from < block.length; ) from += writeSync(1, block, from)
}
writeFileSync(file, hash.digest('hex'))
