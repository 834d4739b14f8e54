import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { cacheFolder, realFolder } from './folders.ts'
import { Stopped } from './java.ts'

const pom = join(realFolder, 'pom.xml')
const mavenMsMax = 10 * 60_000

/**
 * The folder with all jars of one profile of the pom. The folder's name holds a hash of the pom, so a resolved one is
 * never asked for again, and a changed version is. Maven writes beside it first: a broken download leaves nothing behind.
 */
export const resolveJars = (profile: string): string => {
  const hash = createHash('sha256').update(readFileSync(pom)).digest('hex').slice(0, 12)
  const folder = join(cacheFolder, 'jars', `${profile}-${hash}`)
  if (existsSync(folder)) return folder
  const unfinished = `${folder}.${process.pid}`
  mkdirSync(unfinished, { recursive: true })
  try {
    copyJars(profile, unfinished)
    // Another run may have finished the same folder meanwhile; one is as good as the other.
    if (!existsSync(folder)) renameSync(unfinished, folder)
  } finally {
    rmSync(unfinished, { recursive: true, force: true })
  }
  return folder
}

const copyJars = (profile: string, outputDirectory: string): void => {
  const { error, status } = spawnSync(
    'mvn',
    [
      ...['--batch-mode', '--quiet', '-Dstyle.color=never', '--file', pom, '--activate-profiles', profile],
      // Asks again for what an earlier run did not find; Maven remembers that for a day otherwise.
      '--update-snapshots',
      'dependency:copy-dependencies',
      `-DoutputDirectory=${outputDirectory}`,
    ],
    { stdio: 'inherit', timeout: mavenMsMax },
  )
  if (error !== undefined && 'code' in error && error.code === 'ENOENT') {
    throw new Stopped('Maven was not found: install the program mvn (Debian: the package maven).')
  }
  if (error !== undefined) throw new Stopped(`Maven did not finish: ${error.message}`)
  if (status !== 0) throw new Stopped(`Maven could not fetch the jars of ${profile}; it ended with status ${status}.`)
}
