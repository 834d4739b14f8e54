import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'

/** A reason to stop that is not a bug, such as a program that is not installed: main prints the message alone. */
export class Stopped extends Error {
  override readonly name = 'Stopped'
}

/** The version the servers are tried with. A later one is taken when it is all there is. */
const preferred = 17
const jvmFolder = '/usr/lib/jvm'

/** The path of a Java 17 program: JAVA_HOME first, then the search path, then Debian's folder of Java versions. */
export const findJava = (env: NodeJS.ProcessEnv = process.env): string => {
  const candidates = [...javaHome(env), 'java', ...installed()]
  const found = candidates.map((java) => ({ java, major: majorVersion(java) }))
  const usable = found.find(({ major }) => major === preferred) ?? found.find(({ major }) => major > preferred)
  if (usable === undefined) {
    const older = found.filter(({ major }) => major > 0).map(({ java, major }) => `${java} is version ${major}`)
    throw new Stopped(
      `Java ${preferred} was not found${older.length > 0 ? ` (${older.join(', ')})` : ''}. Install it (Debian: openjdk-17-jre-headless) or set JAVA_HOME.`,
    )
  }
  return usable.java
}

const javaHome = (env: NodeJS.ProcessEnv): readonly string[] =>
  env['JAVA_HOME'] ? [join(env['JAVA_HOME'], 'bin', 'java')] : []

const installed = (): readonly string[] =>
  existsSync(jvmFolder)
    ? readdirSync(jvmFolder)
        .filter((name) => name.includes(String(preferred)))
        .sort()
        .map((name) => join(jvmFolder, name, 'bin', 'java'))
        .filter((path) => existsSync(path))
    : []

/** 0 when the program does not run. */
const majorVersion = (java: string): number => {
  const { stderr } = spawnSync(java, ['-version'], { encoding: 'utf8' })
  const version = /version "(?:1\.)?(\d+)/.exec(stderr ?? '')
  return Number(version?.[1] ?? 0)
}
