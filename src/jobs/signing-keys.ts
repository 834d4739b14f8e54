import { assert } from '../kernel/assert.ts'
import type { Random } from '../kernel/random.ts'
import type { Tables } from '../tables/port.ts'
import { jobsTable } from './keys.ts'
import type { SigningKey } from './signer.ts'

const secretBytes = 32
const rowKey = 'signing#1'

/**
 * The key that the processes of one store share when nobody configured any: whoever comes first makes it, the others find it.
 * Whoever can read it can already read and write every job.
 */
export const storedSigningKey = async (tables: Tables, random: Random): Promise<SigningKey> => {
  const [verdict] = await tables.commit([
    {
      actions: [
        {
          kind: 'put',
          table: jobsTable.name,
          row: { job_id: rowKey, secret: random.bytes(secretBytes) },
          if: { test: 'absent' },
        },
      ],
    },
  ])
  if (verdict?.kind === 'failed') throw verdict.fault
  const secret = verdict?.row?.['secret']
  assert(secret instanceof Uint8Array && secret.length === secretBytes, 'the stored signing key is not one')
  return { id: 'stored', secret: Uint8Array.from(secret) }
}
