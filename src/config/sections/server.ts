import { z } from 'zod'

const minute = 60_000

export const serverOptions = z.strictObject({
  host: z
    .string()
    .min(1)
    .max(253)
    .default('127.0.0.1')
    .describe('Where the server listens. Any address beyond this machine needs `tokens`.'),
  port: z.int().min(0).max(65_535).default(7_171).describe('The port; 0 is any free one.'),
  tokens: z
    .array(
      z
        .string()
        .regex(/^[\x21-\x7e]{20,512}$/, '20 to 512 printable characters without blanks')
        .describe('A secret that callers show.'),
    )
    .max(100)
    .default([])
    .describe(
      'Secrets of callers, any of which is accepted on every call. None: only the token that was made for this machine.',
    ),
  hosts: z
    .array(z.string().min(1).max(253))
    .max(100)
    .default([])
    .describe('Names under which callers may reach the server, besides its own address and those of the loopback.'),
  connectionsMax: z
    .int()
    .min(1)
    .max(100_000)
    .default(1_000)
    .describe('Connections at one time at the most, for each address; more are turned away.'),
  streamsMax: z
    .int()
    .min(1)
    .max(10_000)
    .default(250)
    .describe('Calls at one time on one HTTP/2 connection at the most; more wait with the caller.'),
  callsMax: z
    .int()
    .min(1)
    .max(1_000_000)
    .default(10_000)
    .describe('Calls at one time in all at the most; more are told to come back later.'),
  messageBytesMax: z
    .int()
    .min(64 * 1_024)
    .max(64 * 1_024 * 1_024)
    .default(4 * 1_024 * 1_024)
    .describe('Bytes of a request at the most.'),
  jsonDepthMax: z
    .int()
    .min(10)
    .max(1_000)
    .default(100)
    .describe('How deep a request in JSON may be nested; deeper ones are refused before they are parsed.'),
  headersTimeoutMs: z
    .int()
    .min(100)
    .max(10 * minute)
    .default(10_000)
    .describe('Longest a connection may take to send the head of a request, from its first byte on.'),
  requestTimeoutMs: z
    .int()
    .min(100)
    .max(60 * minute)
    .default(30_000)
    .describe('Longest a request may take to arrive as a whole.'),
  idleTimeoutMs: z
    .int()
    .min(1_000)
    .max(24 * 60 * minute)
    .default(5 * minute)
    .describe('How long a connection without calls is kept.'),
  stallMs: z
    .int()
    .min(1_000)
    .max(60 * minute)
    .default(minute)
    .describe('How long a reader of a stream may take nothing before it is cut off; it can resume where it was.'),
  resetsMax: z
    .int()
    .min(10)
    .max(100_000)
    .default(500)
    .describe('Calls that one HTTP/2 connection may abandon within ten seconds before it is closed.'),
  drainMs: z
    .int()
    .min(0)
    .max(10 * minute)
    .default(10_000)
    .describe('How long calls under way may take to end when the server stops.'),
})

export type ServerOptions = z.output<typeof serverOptions>
