// Jobs in tables and on pages of their own. Everything that is somebody's text is made plain, everything secret is hidden.

import { isFinal } from '../job-words.ts'
import type { JobView, Json } from '../jobs-client.ts'
import { timeText } from '../parse/time.ts'
import { type Paint, stateColours } from './colours.ts'
import { plainText } from './plain-text.ts'
import { hidden, isSecretName, safeJob } from './secrets.ts'
import { type Column, tableLines } from './table.ts'
import { padTo } from './width.ts'

/** `4s`, `12m`, `3h`, `5d`: the largest unit says enough. */
const ageText = (ms: number): string => {
  const seconds = Math.max(0, Math.floor(ms / 1_000))
  if (seconds < 60) return `${seconds}s`
  if (seconds < 3_600) return `${Math.floor(seconds / 60)}m`
  if (seconds < 86_400) return `${Math.floor(seconds / 3_600)}h`
  return `${Math.floor(seconds / 86_400)}d`
}

/** What a job does, as one would type it. */
const workText = (job: JobView): string => {
  const { params } = safeJob(job)
  return plainText(params.kind === 'command' ? params.argv.map(quoted).join(' ') : `handler ${params.name}`)
}

const quoted = (argument: string): string =>
  /^[\w@%+=:,./‹›-]+$/.test(argument) ? argument : `'${argument.replaceAll("'", String.raw`'\''`)}'`

export const jobTable = (
  jobs: readonly JobView[],
  now: number,
  paint: Paint,
  columnsMax: number | undefined,
): readonly string[] => {
  const columns: readonly Column<JobView>[] = [
    { title: 'JOB', text: (job) => job.id },
    { title: 'STATE', text: (job) => job.state, colour: (job) => stateColours[job.state] },
    { title: 'QUEUE', text: (job) => plainText(job.queue) },
    { title: 'TRY', text: (job) => String(job.attempt) },
    { title: 'AGE', text: (job) => ageText(now - job.createdAt) },
    { title: 'WHAT', text: workText, gives: true },
  ]
  return tableLines(columns, jobs, paint, columnsMax)
}

/** A job as `--json` gives it: as it is, with times in words and secrets hidden. */
export const jobJson = (job: JobView): unknown => {
  const { createdAt, updatedAt, notBefore, cancelRequestedAt, params, ...rest } = safeJob(job)
  return {
    ...rest,
    params: params.kind === 'handler' ? { ...params, input: safeInput(params.input) } : params,
    createdAt: timeText(createdAt),
    updatedAt: timeText(updatedAt),
    notBefore: timeText(notBefore),
    ...(cancelRequestedAt === undefined ? {} : { cancelRequestedAt: timeText(cancelRequestedAt) }),
  }
}

/** Every fact about a job, one on a line. */
export const jobPage = (job: JobView, now: number, paint: Paint): readonly string[] => {
  const safe = safeJob(job)
  const { params } = safe
  const when = (ms: number) => `${timeText(ms)} (${ms > now ? `in ${ageText(ms - now)}` : `${ageText(now - ms)} ago`})`
  const facts: readonly (readonly [string, string | undefined])[] = [
    ['job', job.id],
    ['state', paint(stateColours[job.state] ?? 'bold', job.state)],
    ['what', workText(job)],
    ['input', params.kind === 'handler' ? plainText(JSON.stringify(safeInput(params.input))) : undefined],
    ['directory', params.kind === 'command' && params.cwd ? plainText(params.cwd) : undefined],
    ['environment', params.kind === 'command' && params.env ? namesText(Object.keys(params.env)) : undefined],
    ['queue', `${plainText(job.queue)}, priority ${job.priority}`],
    [
      'attempt',
      `${job.attempt} (${job.failedAttempts} failed, ${job.lostAttempts} lost, at most ${job.retry.maxAttempts} tries)`,
    ],
    ['run', job.run > 1 ? String(job.run) : undefined],
    ['worker', job.workerId && plainText(job.workerId)],
    ['time limit', job.timeoutMs ? `${job.timeoutMs} ms` : undefined],
    ['created', when(job.createdAt)],
    ['not before', !isFinal(job.state) && job.notBefore > now ? when(job.notBefore) : undefined],
    ['changed', when(job.updatedAt)],
    ['cancel asked', job.cancelRequestedAt === undefined ? undefined : when(job.cancelRequestedAt)],
    ['request id', job.requestId && plainText(job.requestId)],
    ['result', job.result === undefined ? undefined : plainText(JSON.stringify(job.result))],
    ['error', job.error && plainText(job.error)],
  ]
  return facts.flatMap(([name, text]) => (text === undefined || text === '' ? [] : [`${padTo(name, 14)}${text}`]))
}

const namesMax = 20

/** Names alone: values are nobody's business. */
const namesText = (names: readonly string[]): string => {
  const shown = names.slice(0, namesMax).map(plainText).join(' ')
  return names.length > namesMax ? `${shown} and ${names.length - namesMax} more` : shown
}

const safeInput = (input: Json): Json => {
  if (Array.isArray(input)) return input.map((part: Json) => safeInput(part))
  if (typeof input !== 'object' || input === null) return input
  return Object.fromEntries(
    Object.entries(input).map(([name, part]) => [name, isSecretName(name) ? hidden : safeInput(part)]),
  )
}
