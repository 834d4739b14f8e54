// What stands behind the commands. Each verb loads what it needs when it is called: whoever lists jobs of a server waits for no
// storage library.

import type { Backend } from '../context.ts'
import type { BackendDeps } from './ground.ts'

export const createBackend = (deps: BackendDeps): Backend => ({
  connect: async (target) => (await import('./remote.ts')).connect(deps, target),
  open: async (options, mode) => (await import('./local.ts')).openLocal(deps, options, mode),
  serve: async (options, how) => (await import('./services.ts')).serve(deps, options, how),
  work: async (options, target, how) => (await import('./services.ts')).work(deps, options, target, how),
  provision: async (options) => (await import('./provisioning.ts')).provisioningOf(deps, options),
})
