import type { DeadLetter } from '../port.ts'
import type { SqsMessage, SqsService } from './service.ts'

/** As many characters as still fit into the smallest message limit there has been, even if every one is escaped. */
const bodyCharsMax = 40_000
const reasonCharsMax = 1_000

/** A dead letter as a message. A body that would not fit is cut: kept in part is better than in the way for ever. */
export const encodeDeadLetter = ({ body, reason }: DeadLetter): string => {
  const letter = { body: body.slice(0, bodyCharsMax), reason: reason.slice(0, reasonCharsMax), v: 1 }
  return JSON.stringify(body.length > bodyCharsMax ? { ...letter, cut_from: body.length } : letter)
}

/** A message in the dead-letter queue that we did not put there is shown as it is. */
const decodeDeadLetter = (text: string): DeadLetter => {
  try {
    const { body, reason } = JSON.parse(text) as Record<string, unknown>
    if (typeof body === 'string' && typeof reason === 'string') return { body, reason }
  } catch {
    // Falls through: somebody else's message.
  }
  return { body: text, reason: 'put here by somebody else' }
}

/** How long letters are hidden from a second reader while we read. Given back at once when we are done. */
const readingSeconds = 30
const callMax = 10

/** Reads without taking: receives, gives back, sorts by age. Best effort, as everything that looks into such a queue is. */
export const readDeadLetters = async (
  service: Pick<SqsService, 'receive' | 'hide'>,
  url: string,
  limit: number,
): Promise<readonly DeadLetter[]> => {
  const messages: SqsMessage[] = []
  while (messages.length < limit) {
    const max = Math.min(callMax, limit - messages.length)
    const batch = await service.receive(url, { max, waitSeconds: 1, holdSeconds: readingSeconds })
    if (batch.length === 0) break
    messages.push(...batch)
  }
  for (let start = 0; start < messages.length; start += callMax) {
    const batch = messages.slice(start, start + callMax)
    await service.hide(
      url,
      batch.map(({ handle }) => ({ handle, seconds: 0 })),
    )
  }
  return messages.sort((a, b) => a.sentAt - b.sentAt).map(({ body }) => decodeDeadLetter(body))
}
