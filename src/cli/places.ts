import { join } from 'node:path'
import type { Host } from './context.ts'

type Where = Pick<Host, 'env' | 'home' | 'platform'>

/** Where data usually lives on this platform. MILLRACE_DATA_DIR and `--data-dir` win over it; see settings.ts. */
export const usualDataDir = ({ env, home, platform }: Where): string => {
  if (platform === 'darwin') return join(home, 'Library', 'Application Support', 'millrace')
  if (platform === 'win32') return join(given(env['LOCALAPPDATA']) ?? join(home, 'AppData', 'Local'), 'millrace')
  return join(absolute(env['XDG_DATA_HOME']) ?? join(home, '.local', 'share'), 'millrace')
}

/** Where a configuration usually lives on this platform. */
export const usualConfigFile = ({ env, home, platform }: Where): string => {
  if (platform === 'darwin') return join(home, 'Library', 'Application Support', 'millrace', 'millrace.yaml')
  if (platform === 'win32')
    return join(given(env['APPDATA']) ?? join(home, 'AppData', 'Roaming'), 'millrace', 'millrace.yaml')
  return join(absolute(env['XDG_CONFIG_HOME']) ?? join(home, '.config'), 'millrace', 'millrace.yaml')
}

/** An empty variable is an absent one. */
const given = (value: string | undefined): string | undefined => (value === '' ? undefined : value)

/** The standard says that a relative path is to be ignored. */
const absolute = (value: string | undefined): string | undefined => (value?.startsWith('/') ? value : undefined)
