// Who says what a log costs: DynamoDB Local by its own account, with the real runtime over it, or a computation over the embedded
// store by the rule that a write is billed by the kilobyte, and twice within a transaction.

import { type AttributeValue, DynamoDB } from '@aws-sdk/client-dynamodb'
import { startFauxqs } from 'fauxqs'
import { loadOptions } from '../../src/config/load.ts'
import { systemClock } from '../../src/kernel/clock.ts'
import { systemRandom } from '../../src/kernel/random.ts'
import { encodings, eventTypes, type StoredItem } from '../../src/log/event.ts'
import { itemRow } from '../../src/log/keys.ts'
import { createProvisioning } from '../../src/provision/provisioning.ts'
import { createRuntime, type Runtime } from '../../src/runtime.ts'
import type { TelemetryEvent } from '../../src/telemetry/events.ts'
import { dynamodb } from '../real/dynamodb.ts'
import { resolveJars } from '../real/jars.ts'
import { findJava } from '../real/java.ts'
import { startServer } from '../real/server.ts'
import { startRig } from './rig.ts'

export interface Bill {
  readonly requests: number
  readonly units: number
  /** Of the items as stored. */
  readonly bytes: number
}

export interface Biller {
  readonly isComputed: boolean
  /** Runs a program as a job; the bill of its output, without what a job costs that says nothing. */
  run(argv: readonly string[]): Promise<Bill>
  /** The units of one item per line. */
  linePerItem(lines: readonly string[]): Promise<number>
  end(): Promise<void>
}

const writes = new Set(['BatchWriteItem', 'PutItem', 'UpdateItem', 'DeleteItem', 'TransactWriteItems'])
const region = 'us-east-1'
const credentials = { accessKeyId: 'bench', secretAccessKey: 'bench' }

export const dynamodbBiller = async (): Promise<Biller> => {
  const java = findJava()
  const server = await startServer(dynamodb, { java, jars: resolveJars('dynamodb') }, new AbortController().signal)
  const queues = await startFauxqs({ port: 0, logger: false })
  const endpoint = { dynamodb: server.address, sqs: `http://127.0.0.1:${queues.port}` }
  const given = { profile: 'aws', aws: { region, endpoint, credentials } }
  await createProvisioning({ clock: systemClock, random: systemRandom }, loadOptions(given)).apply()
  const counting = createCounting()
  const runtime = await createRuntime(given, { emit: counting.emit, environment: { PATH: process.env['PATH'] ?? '' } })
  const client = new DynamoDB({ region, credentials, endpoint: server.address })
  const run = (argv: readonly string[]) => billed(runtime, counting, argv)
  const silence = await run(['true'])
  return {
    isComputed: false,
    run: async (argv) => {
      const { requests, units, bytes } = await run(argv)
      return { requests: requests - silence.requests, units: units - silence.units, bytes }
    },
    linePerItem: (lines) => putLines(client, lines),
    end: async () => {
      await runtime.stop()
      client.destroy()
      await queues.stop()
      await server.stop()
    },
  }
}

const createCounting = () => {
  let [requests, units] = [0, 0]
  return {
    emit: (event: TelemetryEvent): void => {
      if (event.name !== 'storage.called' || !writes.has(event.operation)) return
      requests += 1
      units += event.units
    },
    since: (before = { requests: 0, units: 0 }) => ({
      requests: requests - before.requests,
      units: units - before.units,
    }),
  }
}

/** From its enqueueing to its end. It is read only afterwards, because whoever watches makes flushes more frequent. */
const billed = async (
  runtime: Runtime,
  counting: ReturnType<typeof createCounting>,
  argv: readonly string[],
): Promise<Bill> => {
  const before = counting.since()
  const jobId = await finished(runtime, argv)
  return { ...counting.since(before), bytes: bytesOf(await itemsOf(runtime, jobId)) }
}

const finished = async (runtime: Runtime, argv: readonly string[]): Promise<string> => {
  const { jobId } = await runtime.enqueue({ queue: 'default', params: { kind: 'command', argv } })
  while ((await runtime.get(jobId)).state !== 'COMPLETED') await new Promise((resolve) => setTimeout(resolve, 50))
  return jobId
}

const itemsOf = async (runtime: Runtime, jobId: string): Promise<readonly StoredItem[]> => {
  const items: StoredItem[] = []
  for await (const entry of runtime.followBatches({ jobId, noFollow: true }))
    if ('item' in entry) items.push(entry.item)
  return items
}

const bytesOf = (items: readonly StoredItem[]): number => items.reduce((sum, { payload }) => sum + payload.length, 0)

/** A line as an item of its own, with the attributes that every item has. */
const lineRow = (line: string, sequence: number) =>
  itemRow(
    '0197f000-0000-7000-8000-000000000000#1',
    {
      sequence,
      endSequence: sequence,
      timestamp: systemClock.now(),
      type: eventTypes.output,
      payload: Buffer.from(line),
      encoding: encodings.plain,
      crc: 0xffff_ffff,
    },
    2_000_000_000,
  )

const perRequest = 25

const sideBySide = 4

const putLines = async (client: DynamoDB, lines: readonly string[]): Promise<number> => {
  let [units, next] = [0, 0]
  const flow = async () => {
    while (next < lines.length) {
      const from = next
      next += perRequest
      const puts = lines.slice(from, from + perRequest).map((line, place) => ({
        PutRequest: { Item: Object.fromEntries(Object.entries(lineRow(line, from + place + 1)).map(attribute)) },
      }))
      const answer = await client.batchWriteItem({
        RequestItems: { millrace_job_events: puts },
        ReturnConsumedCapacity: 'TOTAL',
      })
      for (const { CapacityUnits = 0 } of answer.ConsumedCapacity ?? []) units += CapacityUnits
    }
  }
  await Promise.all(Array.from({ length: sideBySide }, flow))
  return units
}

const attribute = ([name, value]: readonly [string, unknown]): readonly [string, AttributeValue] => [
  name,
  value instanceof Uint8Array ? { B: value } : typeof value === 'number' ? { N: String(value) } : { S: String(value) },
]

export const computedBiller = async (): Promise<Biller> => {
  let flushes = 0
  let published = 0
  const rig = await startRig(
    {},
    {
      emit: (event) => {
        if (event.name !== 'log.flushed') return
        flushes += 1
        published += event.items
      },
    },
  )
  return {
    isComputed: true,
    run: async (argv) => {
      ;[flushes, published] = [0, 0]
      const items = await itemsOf(rig.runtime, await finished(rig.runtime, argv))
      const units = items.reduce((sum, item, place) => sum + unitsOf(item) * (place < published ? 1 : 2), 0)
      return { requests: flushes, units, bytes: bytesOf(items) }
    },
    linePerItem: async (lines) => lines.reduce((sum, line) => sum + kilobytes(line.length + aroundBytes), 0),
    end: rig.end,
  }
}

/** Names and values of the other attributes of an item. */
const aroundBytes = 190
const kilobytes = (bytes: number): number => Math.ceil(bytes / 1_024)
const unitsOf = ({ payload }: StoredItem): number => kilobytes(payload.length + aroundBytes)
