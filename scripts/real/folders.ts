import { join } from 'node:path'

/** Where the descriptions of the real servers lie. */
export const realFolder = import.meta.dirname

export const checkout = join(realFolder, '..', '..')

/** Downloads and logs. Not in git; may be deleted at any time. */
export const cacheFolder = join(checkout, '.cache')
