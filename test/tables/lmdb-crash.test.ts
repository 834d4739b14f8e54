import { test } from 'vitest'
import { surviveKills } from './support/crash.ts'

test('K01 a process killed in the middle of writing leaves every acknowledged row and no half of one', async () => {
  await surviveKills(20, 1)
}, 180_000)
