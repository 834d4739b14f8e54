import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'

/** The folder that package.json is in: this file may also run as it was compiled, from a folder of its own. */
const checkoutAbove = (folder: string): string =>
  existsSync(join(folder, 'package.json')) ? folder : checkoutAbove(dirname(folder))

export const checkout = checkoutAbove(import.meta.dirname)

/** Where the descriptions of the real servers lie. */
export const realFolder = join(checkout, 'scripts', 'real')

/** Downloads and logs. Not in git; may be deleted at any time. */
export const cacheFolder = join(checkout, '.cache')
