import { Fault, type FaultEntry } from '../kernel/fault.ts'
import { TableFault } from './faults.ts'

/** A data directory cannot be opened as it is. The message names the path. */
export abstract class DirectoryFault extends Fault {
  readonly path: string
  constructor(message: string, path: string, cause?: unknown) {
    super(message, cause === undefined ? {} : { cause })
    this.path = path
  }
}

/** Another process works on the directory. */
export class DirectoryHeld extends DirectoryFault {
  readonly code = 'DIRECTORY_HELD'
  readonly retry = 'later'
  readonly holder: { readonly host: string; readonly pid: number }
  constructor(path: string, holder: { readonly host: string; readonly pid: number }) {
    super(`${path} is in use by process ${holder.pid} on ${holder.host}`, path)
    this.holder = { host: holder.host, pid: holder.pid }
  }
}

/** The path cannot be a data directory: not a directory, not ours, not writable, on a network file system. */
export class DirectoryUnusable extends DirectoryFault {
  readonly code = 'DIRECTORY_UNUSABLE'
  readonly retry = 'never'
}

/** The data file is cut short, overwritten or otherwise not what was written. */
export class DirectoryDamaged extends DirectoryFault {
  readonly code = 'DIRECTORY_DAMAGED'
  readonly retry = 'never'
}

/** The directory was written in a format that this version does not know. */
export class FormatUnknown extends DirectoryFault {
  readonly code = 'FORMAT_UNKNOWN'
  readonly retry = 'never'
}

/** There is no embedded store for this platform. */
export class EngineMissing extends Fault {
  readonly code = 'ENGINE_MISSING'
  readonly retry = 'never'
}

/** Another process took the directory over because it presumed us dead. */
export class HolderLost extends TableFault {
  readonly code = 'HOLDER_LOST'
  readonly retry = 'never'
  readonly outcome = 'none'
}

export const directoryFaults: Readonly<Record<string, FaultEntry>> = {
  DIRECTORY_HELD: {
    meaning: 'Another process works on the data directory; the message names its process id and host.',
    next: 'Nothing was opened and nothing was changed.',
    advice: 'Talk to the running process, stop it, or choose another directory.',
  },
  DIRECTORY_UNUSABLE: {
    meaning: 'The path cannot be used as a data directory; the message says why.',
    next: 'Nothing was opened and nothing was changed.',
    advice: 'Mend what the message names (owner, permissions, parent directory, file system), or choose another path.',
  },
  DIRECTORY_DAMAGED: {
    meaning: 'The data file is not what was written: cut short, overwritten or with broken pages.',
    next: 'The directory was not opened, so that nothing in it gets worse.',
    advice: 'Check the disk, keep a copy of the directory, and restore it from a backup.',
  },
  FORMAT_UNKNOWN: {
    meaning: 'The directory was written in a format that this version does not know.',
    next: 'The directory was not opened and nothing in it was changed.',
    advice: 'Use the version that wrote it, or choose another directory.',
  },
  ENGINE_MISSING: {
    meaning: 'The native module of the embedded store is not there for this platform.',
    next: 'Nothing was started: data that only looks stored would be worse.',
    advice: 'Install again without leaving out optional dependencies, or use the profile of a storage service.',
  },
  HOLDER_LOST: {
    meaning: 'Another process took the data directory over, because this one gave no sign of life for 30 seconds.',
    next: 'Nothing was written. This process writes nothing more; the other one goes on with the jobs.',
    advice: 'Start the process again if it should take part. Find out what held it up: a paused machine, a stuck disk.',
  },
}
