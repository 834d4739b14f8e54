// Prints so many lines of 80 bytes as fast as the pipe takes them. Arguments: what kind, and how many.

import { writeSync } from 'node:fs'

const kinds: Readonly<Record<string, (index: number) => string>> = {
  numbered: (index) => `line ${String(index).padStart(9, '0')} of a program that says the same thing again and again`,
  service: (index) =>
    `2026-11-18T12:00:${two(index % 60)}.${three(index % 1_000)}Z INFO worker-${index % 40} finished step ` +
    `${(index * 7_919) % 100_000} of task ${(index * 104_729) % 1_000_003}`,
}

const two = (value: number): string => String(value).padStart(2, '0')
const three = (value: number): string => String(value).padStart(3, '0')

const [kind = 'numbered', wanted = '0'] = process.argv.slice(2)
const lineOf = kinds[kind] ?? ((index: number) => String(index))

// Longer than what a compressor remembers, so that it gains nothing from the repetition.
const linesPerBlock = 2_000
const block = Buffer.from(
  Array.from({ length: linesPerBlock }, (_, index) => `${lineOf(index).padEnd(79, '.').slice(0, 79)}\n`).join(''),
)

const write = (bytes: Buffer): void => {
  for (let from = 0; from < bytes.length; ) from += writeSync(1, bytes, from)
}
let left = Number(wanted)
for (; left >= linesPerBlock; left -= linesPerBlock) write(block)
write(block.subarray(0, left * 80))
