// A second process of a benchmark, which answers one question at a time.

import { fork } from 'node:child_process'
import { once } from 'node:events'
import { extname, join } from 'node:path'

export interface Partner<Question, Answer> {
  readonly pid: number
  ask(question: Question): Promise<Answer>
  end(): Promise<void>
}

/** Starts a file of this folder that calls `answerQuestions`; resolves when it is ready. */
export const startPartner = async <Question, Answer>(
  name: string,
  given: readonly string[] = [],
): Promise<Partner<Question, Answer>> => {
  const child = fork(join(import.meta.dirname, `${name}${extname(import.meta.filename)}`), [...given], {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    serialization: 'advanced',
  })
  const heard = async (): Promise<unknown> => {
    const ended = new AbortController()
    const early = once(child, 'exit', { signal: ended.signal }).then(([code]) => {
      throw new Error(`the process '${name}' ended with ${code}`)
    })
    try {
      return (await Promise.race([once(child, 'message'), early]))[0]
    } finally {
      early.catch(() => {})
      ended.abort()
    }
  }
  await heard()
  return {
    pid: child.pid ?? 0,
    ask: async (question) => {
      const answer = heard()
      child.send(question as object)
      return (await answer) as Answer
    },
    end: async () => {
      const gone = once(child, 'exit')
      child.disconnect()
      await gone
    },
  }
}

/** The other side. `end` is called when the benchmark has no more questions. */
export const answerQuestions = <Question, Answer>(
  answer: (question: Question) => Promise<Answer>,
  end: () => Promise<void> = async () => {},
): void => {
  process.on('message', (question: Question) => {
    void answer(question).then((said) => process.send?.(said as object))
  })
  process.once('disconnect', () => void end().then(() => process.exit(0)))
  process.send?.('ready')
}
