// Output such as real programs write, made anew each time from a seed: a compiler, a package manager, a service that logs JSON,
// a test runner, a deployment with timestamps. Words repeat as they do in real logs; numbers, hashes and times do not.

import { createSeededRandom } from '../../src/sim/seeded-random.ts'

export interface SampleLog {
  readonly name: string
  readonly lines: readonly string[]
}

const linesEach = 10_000

export const sampleLogs = (): readonly SampleLog[] =>
  Object.entries(writers).map(([name, write]) => {
    const chance = createSeededRandom(name)
    const draw: Draw = {
      below: (limit) => Math.floor(chance.next() * limit),
      hex: (length) =>
        Buffer.from(chance.bytes(Math.ceil(length / 2)))
          .toString('hex')
          .slice(0, length),
      of: (words) => words[Math.floor(chance.next() * words.length)] as string,
    }
    return { name, lines: Array.from({ length: linesEach }, (_, index) => `${write(index, draw)}\n`) }
  })

interface Draw {
  below(limit: number): number
  hex(length: number): string
  of(words: readonly string[]): string
}

const parts = [
  'core',
  'parser',
  'render',
  'network',
  'storage',
  'session',
  'audio',
  'codec',
  'layout',
  'index',
  'query',
]
const nouns = ['buffer', 'table', 'stream', 'writer', 'reader', 'cache', 'queue', 'token', 'matrix', 'region', 'socket']
const packages = [
  'left',
  'router',
  'schema',
  'colour',
  'parse',
  'glob',
  'stream',
  'path',
  'tiny',
  'deep',
  'async',
  'micro',
]
const clockOf = (index: number): string => new Date(1_790_000_000_000 + index * 137).toISOString()

const writers: Readonly<Record<string, (index: number, draw: Draw) => string>> = {
  compiler: (index, { of, below }) => {
    const file = `src/${of(parts)}/${of(nouns)}_${of(nouns)}.cc`
    if (index % 40 === 39) {
      return `${file}:${below(2_000)}:${below(80)}: warning: unused parameter '${of(nouns)}' [-Wunused-parameter]`
    }
    return `[${index + 1}/10000] Building CXX object lib/CMakeFiles/${of(parts)}.dir/${file}.o`
  },
  'package manager': (_, { of, below, hex }) => {
    const name = `${of(packages)}-${of(nouns)}`
    const version = `${below(9)}.${below(30)}.${below(20)}`
    return `npm http fetch GET 200 registry/${name}/-/${name}-${version}.tgz ${below(900)}ms (cache miss) sha512-${hex(16)}`
  },
  'JSON service': (index, { of, below, hex }) =>
    JSON.stringify({
      level: below(20) === 0 ? 'warn' : 'info',
      time: clockOf(index),
      service: 'checkout',
      requestId: hex(16),
      method: of(['GET', 'POST', 'PUT']),
      path: `/v1/${of(nouns)}s/${below(100_000)}`,
      status: of(['200', '200', '200', '201', '404']),
      durationMs: below(400),
      msg: 'request completed',
    }),
  'test runner': (index, { of, below }) =>
    index % 12 === 0
      ? ` PASS  test/${of(parts)}/${of(nouns)}.test.ts (${below(90)} tests) ${below(3_000)}ms`
      : `   ✓ ${of(parts)} ${of(nouns)} keeps its ${of(nouns)} when the ${of(nouns)} is ${of(['full', 'empty', 'closed'])} ${below(40)}ms`,
  deployment: (index, { of, below, hex }) =>
    `${clockOf(index)} ${of(['INFO ', 'INFO ', 'INFO ', 'DEBUG'])} [${of(parts)}-${below(40)}] ${of(nouns)} ${hex(8)} ` +
    `moved to ${of(['ready', 'pending', 'running'])} after ${below(5_000)} ms`,
}
