// Writes pairs of rows, several groups at a time, and says so after each acknowledgement. Ends only by a signal.

import { openAt } from './directory.ts'

const [path = '', first = '0'] = process.argv.slice(2)
const tables = await openAt(path)
console.log('open')

let next = Number(first)
const lane = async () => {
  for (;;) {
    const n = next
    next += 1
    const payload = Buffer.alloc(1 + ((n * 7919) % 6_000), n % 251)
    const [verdict] = await tables.commit([
      {
        actions: [
          {
            kind: 'put',
            table: 'things',
            row: { thing_id: `t${n}`, n, colour: 'red', size: n % 10 },
            keep: n % 2 === 0,
          },
          { kind: 'put', table: 'lines', row: { log_id: 'log', sequence: n, payload, ttl: n } },
        ],
      },
    ])
    if (verdict?.kind !== 'done') throw new Error(`not done: ${JSON.stringify(verdict)}`)
    console.log(`${n}`)
  }
}
await Promise.all(Array.from({ length: 8 }, lane))
