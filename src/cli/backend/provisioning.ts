import type { Options } from '../../config/options.ts'
import { createProvisioning } from '../../provision/provisioning.ts'
import type { Provisioning } from '../context.ts'
import type { BackendDeps } from './ground.ts'

/** What the profile `aws` needs to be there. */
export const provisioningOf = (deps: BackendDeps, options: Options): Provisioning => createProvisioning(deps, options)
