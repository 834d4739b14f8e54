// Opens a directory and prints the code and the message of the fault, if there is one.

import { isFault } from '../../../src/kernel/fault.ts'
import { openAt } from './directory.ts'

const [path = ''] = process.argv.slice(2)
try {
  await (await openAt(path)).close()
  console.log('opened')
} catch (error) {
  console.log(isFault(error) ? `${error.code} ${error.message}` : `${error}`)
}
