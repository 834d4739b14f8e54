import { open } from 'node:fs/promises'
import { ConfigInvalid } from '../config/faults.ts'
import type { Files } from './context.ts'
import { readToken } from './token-file.ts'

const configBytesMax = 1_048_576

export const createFiles = (uid: number | undefined): Files => ({
  readToken: (path) => readToken(path, uid),
  readText: async (path) => {
    if (path.includes('\0')) throw new ConfigInvalid('the path of a configuration has no NUL in it')
    try {
      const file = await open(path, 'r')
      try {
        const { size } = await file.stat()
        if (size > configBytesMax) throw new ConfigInvalid(`${path} is too large for a configuration (${size} bytes)`)
        return await file.readFile('utf8')
      } finally {
        await file.close()
      }
    } catch (cause) {
      const code = (cause as NodeJS.ErrnoException).code
      if (code === 'ENOENT' || code === 'ENOTDIR') return undefined
      if (cause instanceof ConfigInvalid) throw cause
      throw new ConfigInvalid(`${path} cannot be read (${code})`, { cause })
    }
  },
})
