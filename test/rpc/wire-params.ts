import type { MessageInitShape } from '@bufbuild/protobuf'
import type { JobParamsSchema } from '../../api/gen/millrace/v1/job_pb.js'

/** A command as it travels. */
export const commandOf = (argv: string[], env: Record<string, string> = {}) =>
  ({ kind: { case: 'command', value: { argv, env } } }) satisfies MessageInitShape<typeof JobParamsSchema>
