import { Fault, type FaultEntry } from '../kernel/fault.ts'

/** An option is missing, unknown or out of range. */
export class ConfigInvalid extends Fault {
  readonly code = 'CONFIG_INVALID'
  readonly retry = 'never'
}

export const configFaults: Readonly<Record<string, FaultEntry>> = {
  CONFIG_INVALID: {
    meaning: 'An option is unknown, of the wrong type or out of its range.',
    next: 'Nothing was started.',
    advice: 'Correct the named key; docs/options.md has every option with its default and range.',
  },
}
