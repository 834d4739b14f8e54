// What 10,000 lines of output cost in a store that bills by the write: requests, write units and bytes, against one item per line
// and against the whole log compressed as one stream. By the bill of DynamoDB Local, or computed where there is no Java to run
// it. Run: npm run bench -- units

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { deflateRawSync } from 'node:zlib'
import { Stopped } from '../real/java.ts'
import { type Bill, type Biller, computedBiller, dynamodbBiller } from './billers.ts'
import { realLogs } from './real-logs.ts'
import { median, type Row } from './row.ts'
import { type SampleLog, sampleLogs } from './sample-logs.ts'

const requestsMax = 30
const fewerMin = 60
const sizeMax = 1.5

const openBiller = async (): Promise<Biller> => {
  try {
    return await dynamodbBiller()
  } catch (error) {
    if (!(error instanceof Stopped)) throw error
    console.log(`  ${error.message} Write units are computed by the rule of 1 KB.`)
    return computedBiller()
  }
}

interface Cost extends Bill {
  readonly name: string
  /** Times fewer units than with one item per line. */
  readonly fewer: number
  /** Bytes as stored over those of the whole log as one stream. */
  readonly size: number
}

const costOf = async (biller: Biller, folder: string, { name, lines }: SampleLog): Promise<Cost> => {
  const file = join(folder, 'log')
  const text = Buffer.from(lines.join(''))
  writeFileSync(file, text)
  const bill = await biller.run(['cat', file])
  const perLine = await biller.linePerItem(lines)
  const whole = deflateRawSync(text, { level: 1 }).length
  return { name, ...bill, fewer: perLine / bill.units, size: bill.bytes / whole }
}

export const benchUnits = async (): Promise<readonly Row[]> => {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-bench-'))
  const biller = await openBiller()
  const costs: Cost[] = []
  for (const log of [...sampleLogs(), ...(await realLogs())]) costs.push(await costOf(biller, folder, log))
  await biller.end()
  rmSync(folder, { recursive: true })

  const requests = Math.max(...costs.map((cost) => cost.requests))
  const fewer = median(costs.map((cost) => cost.fewer))
  const size = Math.max(...costs.map((cost) => cost.size))
  const how = biller.isComputed ? ', computed' : ''
  return [
    ...costs.map(({ name, units, fewer: ratio }) => ({
      name: `${name}: write units${how}; ratio: times fewer than one item per line`,
      value: units,
      unit: 'units',
      ratio,
    })),
    {
      name: 'write requests of a log, the most',
      value: requests,
      unit: 'requests',
      target: requestsMax,
      ok: requests <= requestsMax,
    },
    {
      name: `write units${how}, times fewer than one item per line, median over logs`,
      value: fewer,
      unit: 'times',
      target: fewerMin,
      moreIsBetter: true,
      ok: fewer >= fewerMin,
    },
    {
      name: 'bytes as stored, against the whole log compressed as one stream, the most',
      value: size,
      unit: 'times',
      target: sizeMax,
      ok: size <= sizeMax,
    },
  ]
}
